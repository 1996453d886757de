"""The control plane as a scheduler sees it: what it is asked, and its answers.

Runs on the scheduler's thread of every rank, in the stream of requests, so that all ranks change
at the same moment.
"""

import json
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from kvflow.engine import snapshot
from kvflow.engine.cache import KvflowRadixCache
from kvflow.engine.ipc import KvflowReq, KvflowReqOutput
from kvflow.engine.settings import to_mode
from kvflow.errors import KvflowError
from kvflow.frames import Frame
from kvflow.recipe.model import Recipe

_log = logging.getLogger(__name__)


def handle(scheduler: Any, request: KvflowReq) -> KvflowReqOutput:
    """Answer a control message. Never raises: a bad one is answered with its error."""
    try:
        answer = _OPERATIONS[request.op](scheduler, json.loads(request.body))
        return KvflowReqOutput(body=msgspec.json.encode(answer).decode())
    except (KvflowError, ValueError, KeyError, TypeError) as error:
        what = error.what if isinstance(error, KvflowError) else f"{error!r}"
        return KvflowReqOutput(error=what)
    except Exception as error:  # noqa: BLE001 - a control message must not end the scheduler
        _log.exception("kvflow: %s failed", request.op)
        return KvflowReqOutput(error=f"{type(error).__name__} while handling {request.op}")


def _cache(scheduler: Any) -> KvflowRadixCache:
    cache = scheduler.tree_cache
    assert isinstance(cache, KvflowRadixCache)
    return cache


def _policy(scheduler: Any, body: dict[str, Any]) -> dict[str, Any]:
    cache = _cache(scheduler)
    if "mode" in body:
        cache.switch(to_mode(body["mode"]))
    return {"mode": cache.mode, "untagged_steps": cache.untagged_steps}


def _serve(scheduler: Any, body: dict[str, Any]) -> dict[str, Any]:
    """The served recipe, with its agents' fixed prefixes as token ids."""
    recipe = Recipe.model_validate(body["recipe"])
    prefixes = msgspec.convert(body["prefixes"], dict[str, list[int]])
    _cache(scheduler).calls.serve(recipe, prefixes)
    return {"agents": {agent: len(ids) for agent, ids in prefixes.items()}}


def _snapshot(scheduler: Any, body: dict[str, Any]) -> Frame:
    return snapshot.take(scheduler, most_nodes=int(body["most_nodes"]))


def _tick(scheduler: Any, body: dict[str, Any]) -> dict[str, Any]:
    _cache(scheduler).tick()
    return {}


_OPERATIONS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "policy": _policy,
    "serve": _serve,
    "snapshot": _snapshot,
    "tick": _tick,
}
