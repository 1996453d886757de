"""Reading a streamed answer, in SGLang's own dialect and in OpenAI's.

A reader takes the events of one stream as they come and is asked for the answer when it ended.
"""

from collections.abc import Callable
from typing import Any, Protocol

from kvflow.client.exchange import Answer
from kvflow.client.http import NonsenseError, RefusedError
from kvflow.client.wire import ChatChunk, GenerateEvent, Meta, SglExt, Tiers, Usage, read

Clock = Callable[[], float]


class Reader(Protocol):
    """Folds the events of one stream into an answer."""

    def take(self, event: dict[str, Any]) -> None:
        """Note one event.

        Raises:
            NonsenseError: it is not of the dialect.
            RefusedError: the server aborted the call.
        """

    def answer(self) -> Answer:
        """The whole answer, once the stream has ended.

        Raises:
            NonsenseError: the stream ended before the answer did.
        """


class _Stopwatch:
    """Times one call from the moment it is made; the reader says when a token came."""

    def __init__(self, clock: Clock, on_first_token: Callable[[], None]) -> None:
        self._clock, self._on_first_token = clock, on_first_token
        self._sent = clock()
        self._ttft_s: float | None = None
        self._further_s: list[float] = []

    @property
    def has_token(self) -> bool:
        return self._ttft_s is not None

    def token(self) -> None:
        since_s = self._clock() - self._sent
        if self._ttft_s is None:
            self._ttft_s = since_s
            self._on_first_token()
        else:
            self._further_s.append(since_s - self._ttft_s)

    @property
    def token_times_s(self) -> tuple[float, ...]:
        return tuple(self._further_s)

    def read(self) -> tuple[float, float]:
        """Time to the first token (to the end, if there was none) and time to the end."""
        latency_s = self._clock() - self._sent
        return (latency_s if self._ttft_s is None else self._ttft_s), latency_s


class ChatReader:
    """Reads /v1/chat/completions, with SGLang's additions where they are asked for.

    Args:
        what: names the call in errors.
        clock: seconds; counts from now.
        on_first_token: called once.
        sglang: whether the server is SGLang. Its first event comes with the first token, though
            the token's text may still be held back; others may send a first event at once.
    """

    def __init__(
        self, what: str, clock: Clock, on_first_token: Callable[[], None], sglang: bool
    ) -> None:
        self._what, self._sglang = what, sglang
        self._watch = _Stopwatch(clock, on_first_token)
        self._text: list[str] = []
        self._has_text = False
        self._finish_reason: str | None = None
        self._usage = Usage()
        self._extra: SglExt | None = None

    def take(self, event: dict[str, Any]) -> None:
        """Note one chunk: a part of the text, the usage, or SGLang's extra fields."""
        chunk = read(ChatChunk, event, self._what)
        self._usage = chunk.usage or self._usage
        self._extra = chunk.sglext or self._extra
        for choice in chunk.choices:
            if choice.finish_reason == "abort":
                raise _aborted(self._what)
            self._time(bool(choice.delta.content or choice.delta.reasoning_content))
            self._text.append(choice.delta.content or "")
            self._finish_reason = choice.finish_reason or self._finish_reason

    def _time(self, text: bool) -> None:
        # SGLang's first event has no text; the first text on its heels is of the same token.
        if (text and self._has_text) or (not self._watch.has_token and (text or self._sglang)):
            self._watch.token()
        self._has_text = self._has_text or text

    def answer(self) -> Answer:
        """The whole answer; cached tokens by tier only if the server sent SGLang's fields."""
        if self._finish_reason is None:
            raise NonsenseError(f"{self._what}: the stream was cut", "it has no finish_reason")
        details = self._usage.prompt_tokens_details
        cached = details.cached_tokens if details else None
        tiers, ids = None, None
        if self._extra is not None:
            # SGLang leaves the details out when nothing was cached.
            tiers = self._extra.cached_tokens_details or Tiers()
            cached = tiers.device + tiers.host + tiers.storage
            ids = tuple(self._extra.output_ids[0]) if self._extra.output_ids else None
        return Answer(
            _well_formed("".join(self._text)),
            ids,
            self._finish_reason,
            *self._watch.read(),
            self._usage.prompt_tokens,
            self._usage.completion_tokens,
            cached,
            tiers.device if tiers else None,
            tiers.host if tiers else None,
            self._watch.token_times_s,
        )


class GenerateReader:
    """Reads SGLang's /generate. Arguments as for ChatReader."""

    def __init__(self, what: str, clock: Clock, on_first_token: Callable[[], None]) -> None:
        self._what = what
        self._watch = _Stopwatch(clock, on_first_token)
        self._tokens = 0
        self._parts: list[GenerateEvent] = []

    def take(self, event: dict[str, Any]) -> None:
        """Note one event: the answer so far, or its newest part, as the server was started."""
        made = read(GenerateEvent, event, self._what)
        reason = made.meta_info.finish_reason
        if reason is not None and reason.type == "abort":
            raise _aborted(self._what, reason.status_code, reason.message)
        if (made.meta_info.completion_tokens or 0) > self._tokens or not self._watch.has_token:
            self._watch.token()
        self._tokens = made.meta_info.completion_tokens or 0
        # Started with --incremental-streaming-output the server sends parts, else all so far.
        if len(made.output_ids) == made.meta_info.completion_tokens:
            self._parts.clear()
        self._parts.append(made)

    def answer(self) -> Answer:
        """The whole answer."""
        meta = self._parts[-1].meta_info if self._parts else Meta(None)
        if meta.finish_reason is None or meta.completion_tokens is None:
            raise NonsenseError(f"{self._what}: the stream was cut", "it has no end")
        tiers = meta.cached_tokens_details or Tiers()
        return Answer(
            _well_formed("".join(part.text for part in self._parts)),
            tuple(one for part in self._parts for one in part.output_ids),
            meta.finish_reason.type,
            *self._watch.read(),
            meta.prompt_tokens,
            meta.completion_tokens,
            meta.cached_tokens,
            tiers.device,
            tiers.host,
            self._watch.token_times_s,
        )


def _aborted(what: str, status: int | None = None, why: str | None = None) -> RefusedError:
    return RefusedError(
        f"{what}: the server aborted the call", status or 500, why or "it does not say why"
    )


def _well_formed(text: str) -> str:
    """Join characters that JSON escapes split in two halves; a lone half cannot be sent on."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
