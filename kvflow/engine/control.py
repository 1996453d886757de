"""The control plane as a scheduler sees it: what it is asked, and its answers.

Runs on the scheduler's thread of every rank, in the stream of requests, so that all ranks change
at the same moment. Only the rank that answers builds what is only for people to look at.
"""

import json
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from kvflow.engine import metrics_sample, snapshot
from kvflow.engine.cache import KvflowRadixCache
from kvflow.engine.ipc import KvflowReq, KvflowReqOutput
from kvflow.engine.settings import to_mode
from kvflow.errors import KvflowError, UsageError
from kvflow.hints import NAME_RULES, TAG_KEY, parse
from kvflow.recipe.model import Recipe

_log = logging.getLogger(__name__)
_MOST_WORDS = 300
_DEGRADED = "something of kvflow's failed in this server, and SGLang goes on as in mode off"
_DEGRADED_HINT = "the server's log says what failed; start the server anew"


def handle(scheduler: Any, request: KvflowReq) -> KvflowReqOutput:
    """Answer a control message. Never raises: a bad one is answered with its error."""
    answer = _answer(scheduler, request)
    answer.replica = snapshot.BOOT
    return answer


def _answer(scheduler: Any, request: KvflowReq) -> KvflowReqOutput:
    try:
        answer = _OPERATIONS[request.op](scheduler, json.loads(request.body))
        return KvflowReqOutput(body=msgspec.json.encode(answer).decode())
    except KvflowError as error:
        return KvflowReqOutput(error=error.what, why=error.why, hint=error.hint)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        # The words of a library's error may repeat what came in, and that may be a prompt.
        ours = str(error)[:_MOST_WORDS] if type(error) is ValueError else type(error).__name__
        return KvflowReqOutput(error=f"{request.op[:64]} cannot be done: {ours}")
    except Exception as error:  # noqa: BLE001 - a control message must not end the scheduler
        _log.exception("kvflow: %s failed", request.op)
        return KvflowReqOutput(error=f"{type(error).__name__} while handling {request.op}")


def _cache(scheduler: Any) -> KvflowRadixCache:
    cache = scheduler.tree_cache
    assert isinstance(cache, KvflowRadixCache)
    return cache


def _answers(scheduler: Any) -> bool:
    """Whether this rank's answers are sent. Nothing that ranks decide by may depend on it."""
    return scheduler.ipc_channels.send_to_tokenizer.socket is not None


def _policy(scheduler: Any, body: dict[str, Any]) -> dict[str, Any]:
    cache = _cache(scheduler)
    if "mode" in body:
        mode = to_mode(body["mode"])
        if cache.degraded and mode != "off":
            raise UsageError(f"mode {mode} cannot be put to work", _DEGRADED, _DEGRADED_HINT)
        cache.switch(mode)
    return {
        "mode": cache.mode,
        "configured": cache.settings.mode,
        "limits": list(cache.limits),
        "untagged_steps": cache.untagged_steps,
        "degraded": _DEGRADED if cache.degraded else None,
    }


def _serve(scheduler: Any, body: dict[str, Any]) -> dict[str, Any]:
    """A recipe, with its agents' fixed prefixes as token ids; of one client, or of all."""
    recipe = Recipe.model_validate(body["recipe"])
    prefixes = msgspec.convert(body["prefixes"], dict[str, list[int]])
    client = body.get("client")
    if client is not None:
        _check_names(client=client)
    _cache(scheduler).calls.serve(recipe, prefixes, client)
    return {"agents": {agent: len(ids) for agent, ids in prefixes.items()}}


def _forget(scheduler: Any, body: dict[str, Any]) -> dict[str, Any]:
    _check_names(client=body["client"], workflow=body["name"])
    _cache(scheduler).forget_workflow(body["client"], body["name"])
    return {}


def _end(scheduler: Any, body: dict[str, Any]) -> dict[str, Any]:
    _check_names(client=body["client"], run=body["run"])
    _cache(scheduler).end_run(body["client"], body["run"], body["expect_next"] is not False)
    return {}


def _snapshot(scheduler: Any, body: dict[str, Any]) -> Any:
    most_nodes = int(body["most_nodes"])
    return snapshot.take(scheduler, most_nodes) if _answers(scheduler) else {}


def _follow(scheduler: Any, body: dict[str, Any]) -> Any:
    since = int(body["since"])
    return snapshot.follow(scheduler, since) if _answers(scheduler) else {}


def _tick(scheduler: Any, body: dict[str, Any]) -> Any:
    """A second has passed. The answer is what metrics show."""
    _cache(scheduler).tick()
    return metrics_sample.take(scheduler) if _answers(scheduler) else {}


def _check_names(**names: object) -> None:
    """Hold names to the rules of tags: what no tag can name is refused.

    Raises:
        UsageError: the first that breaks a rule.
    """
    whole = {"client": "c", "workflow": "w", "run": "r", "agent": "a", **names}
    for bad in parse({TAG_KEY: whole}).bad:
        raise UsageError(
            bad.detail.removeprefix(f"{TAG_KEY}."), "it is no name that a tag can have", NAME_RULES
        )


_OPERATIONS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "policy": _policy,
    "serve": _serve,
    "forget": _forget,
    "end": _end,
    "snapshot": _snapshot,
    "follow": _follow,
    "tick": _tick,
}
