"""OpenAI's Python client as one agent of a run: every call it makes is tagged."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kvflow.client.run import Run
from kvflow.client.tagging import CustomParams
from kvflow.errors import UsageError
from kvflow.hints import TAG_KEY

Client = TypeVar("Client")

_HOOK = "_prepare_options"
_COPIES = ("copy", "with_options")
# SGLang's /v1/responses passes no custom_params on; a tag would be lost there in silence.
_TAGGED_PATHS = ("/chat/completions", "/completions")


def as_agent(
    client: Client,
    run: Run,
    agent: str,
    *,
    fixed_tokens: int | None = None,
    final: bool = False,
) -> Client:
    """A client that speaks as an agent; the one that is given is left as it is.

    Whatever it is asked by (`create`, `parse`, `stream`, raw responses), the chat completions and
    completions that it requests carry the tag, beside what their own `extra_body` holds; where a
    call's own `custom_params` has the same key, that one is sent. Other requests pass unchanged:
    SGLang's /v1/responses takes no tag.

    Args:
        client: an `openai.OpenAI` or `AsyncOpenAI`. The new one shares its connections.
        run: the run that the calls belong to; its `steps` are looked up at each call.
        agent: who speaks, by its name in the recipe.
        fixed_tokens: length of the agent's fixed prefix, if the application knows it.
        final: whether the run ends with a call of this client.

    Returns:
        A client of the same type.

    Raises:
        UsageError: it is no such client, or the server would ignore a part of the tag.
    """
    if not all(callable(getattr(client, name, None)) for name in (_HOOK, *_COPIES)):
        raise UsageError(
            f"{type(client).__name__} is not a client whose calls can be tagged",
            "openai.OpenAI and openai.AsyncOpenAI of version 1 or 2 are",
            'with another one, send extra_body={"custom_params": run.tag(agent)}',
        )
    run.tag(agent, fixed_tokens, final=final)  # refused now rather than at the first call
    # The class's own method: from the client of another agent it makes one without a tag.
    speaker: Client = type(client).copy(client)  # type: ignore[attr-defined]
    _tag_calls(speaker, lambda: run.tag(agent, fixed_tokens, final=final))
    return speaker


def _tag_calls(speaker: Any, params: Callable[[], CustomParams]) -> None:
    """Have a client, and what is copied from it, add these `custom_params` to its calls."""
    prepare = getattr(speaker, _HOOK)

    # Of the synchronous client the hook returns options, of the other one something to await.
    def prepare_tagged(options: Any) -> Any:
        if options.method == "post" and options.url in _TAGGED_PATHS:
            options.extra_json = _merge(options.extra_json or {}, params())
        return prepare(options)

    setattr(speaker, _HOOK, prepare_tagged)
    for name in _COPIES:
        setattr(speaker, name, _copying(getattr(speaker, name), params))


def _copying(make_copy: Callable[..., Any], params: Callable[[], CustomParams]) -> Any:
    def copy(*args: Any, **kwargs: Any) -> Any:
        speaker = make_copy(*args, **kwargs)
        _tag_calls(speaker, params)
        return speaker

    return copy


def _merge(extra: Mapping[str, Any], params: CustomParams) -> dict[str, Any]:
    own = extra.get("custom_params") or {}
    merged = {**params, **own}
    if isinstance(own.get(TAG_KEY), Mapping):
        merged[TAG_KEY] = {**params[TAG_KEY], **own[TAG_KEY]}
    return {**extra, "custom_params": merged}
