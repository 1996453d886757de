"""The parts of servers' answers that matter here; whatever else they hold is passed over."""

from typing import Any, TypeVar

import msgspec

from kvflow.client.http import NonsenseError

Part = TypeVar("Part")


class Model(msgspec.Struct):
    """One entry of /v1/models."""

    id: str


class Models(msgspec.Struct):
    """/v1/models."""

    data: list[Model]


class ServerInfoReply(msgspec.Struct):
    """SGLang's /server_info. Other servers have no such thing."""

    version: str
    internal_states: list[Any]


class Tokens(msgspec.Struct):
    """SGLang's /tokenize."""

    tokens: list[int]


class Text(msgspec.Struct):
    """SGLang's /detokenize."""

    text: str


class Tiers(msgspec.Struct):
    """Where SGLang found the cached part of a prompt, in tokens."""

    device: int = 0
    host: int = 0
    storage: int = 0


class FinishReason(msgspec.Struct):
    """Why SGLang ended an answer; the last two of an abort only."""

    type: str
    message: str | None = None
    status_code: int | None = None


class Meta(msgspec.Struct):
    """SGLang's meta_info. An aborted call has no counts."""

    finish_reason: FinishReason | None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cached_tokens_details: Tiers | None = None


class GenerateEvent(msgspec.Struct):
    """One event of SGLang's /generate."""

    text: str
    output_ids: list[int]
    meta_info: Meta


class Delta(msgspec.Struct):
    """What a chunk adds to the answer."""

    content: str | None = None
    reasoning_content: str | None = None


class Choice(msgspec.Struct):
    """One of the answers; here there is one."""

    delta: Delta
    finish_reason: str | None = None


class PromptDetails(msgspec.Struct):
    """Of the usage."""

    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    """Counts at the end of a stream."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None


class SglExt(msgspec.Struct):
    """What SGLang adds at the end of a stream, if it is asked for."""

    cached_tokens_details: Tiers | None = None
    output_ids: list[list[int]] | None = None


class ChatChunk(msgspec.Struct):
    """One event of /v1/chat/completions."""

    choices: list[Choice]
    usage: Usage | None = None
    sglext: SglExt | None = None


def read(kind: type[Part], value: Any, what: str) -> Part:
    """A decoded JSON value as the type that it should have.

    Raises:
        NonsenseError: it has another one; names `what`.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise NonsenseError(
            f"{what}: the server answered nonsense", f"{error}; it begins {str(value)[:120]!r}"
        ) from error
