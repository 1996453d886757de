"""Reading a streamed answer, in SGLang's own dialect and in OpenAI's.

A reader takes the events of one stream as they come and is asked for the answer when it ended.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kvflow.client.exchange import Answer
from kvflow.client.http import NonsenseError, RefusedError

Clock = Callable[[], float]


class Reader(Protocol):
    """Folds the events of one stream into an answer."""

    def take(self, event: Mapping[str, Any]) -> None:
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
        self.ttft_s: float | None = None

    def token(self) -> None:
        if self.ttft_s is None:
            self.ttft_s = self._clock() - self._sent
            self._on_first_token()

    def latency_s(self) -> float:
        return self._clock() - self._sent


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
        self._finish_reason: str | None = None
        self._usage: Mapping[str, Any] = {}
        self._extra: Mapping[str, Any] | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        """Note one chunk: a part of the text, the usage, or SGLang's extra fields."""
        try:
            self._usage = event.get("usage") or self._usage
            self._extra = event.get("sglext") or self._extra
            for choice in event["choices"]:
                self._take_choice(choice["delta"], choice.get("finish_reason"))
        except (KeyError, TypeError, AttributeError) as error:
            raise NonsenseError(f"{self._what}: no chat chunk", _lacking(error, event)) from error

    def _take_choice(self, delta: Mapping[str, Any], finish_reason: str | None) -> None:
        text = delta.get("content") or ""
        if self._sglang or text or delta.get("reasoning_content") or finish_reason:
            self._watch.token()
        self._text.append(text)
        self._finish_reason = finish_reason or self._finish_reason

    def answer(self) -> Answer:
        """The whole answer; cached tokens by tier only if the server sent SGLang's fields."""
        if self._finish_reason is None or self._watch.ttft_s is None:
            raise NonsenseError(f"{self._what}: the stream was cut", "it has no finish_reason")
        in_total = (self._usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        device = host = output_ids = None
        if self._extra is not None:
            # SGLang leaves the details out when nothing was cached.
            found = self._extra.get("cached_tokens_details") or {}
            device, host = found.get("device", 0), found.get("host", 0)
            in_total = device + host + found.get("storage", 0)
            output_ids = tuple((self._extra.get("output_ids") or [()])[0])
        return Answer(
            "".join(self._text),
            output_ids,
            self._finish_reason,
            self._watch.ttft_s,
            self._watch.latency_s(),
            self._usage.get("prompt_tokens"),
            self._usage.get("completion_tokens"),
            in_total,
            device,
            host,
        )


class GenerateReader:
    """Reads SGLang's /generate. Arguments as for ChatReader."""

    def __init__(self, what: str, clock: Clock, on_first_token: Callable[[], None]) -> None:
        self._what = what
        self._watch = _Stopwatch(clock, on_first_token)
        self._text: list[str] = []
        self._ids: list[list[int]] = []
        self._meta: Mapping[str, Any] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """Note one event: the answer so far, or its newest part, as the server was started."""
        try:
            self._watch.token()
            self._text.append(event["text"])
            self._ids.append(event["output_ids"])
            self._meta = event["meta_info"]
            reason = self._meta["finish_reason"]
            aborted = reason is not None and reason["type"] == "abort"
        except (KeyError, TypeError) as error:
            raise NonsenseError(f"{self._what}: no answer event", _lacking(error, event)) from error
        if aborted:
            raise RefusedError(
                f"{self._what}: the server aborted the call",
                reason.get("status_code") or 500,
                str(reason.get("message") or ""),
            )

    def answer(self) -> Answer:
        """The whole answer."""
        reason, ttft_s = self._meta.get("finish_reason"), self._watch.ttft_s
        if reason is None or ttft_s is None:
            raise NonsenseError(f"{self._what}: the stream was cut", "it has no finish_reason")
        try:
            found = self._meta.get("cached_tokens_details") or {}
            text, ids = self._whole()
            return Answer(
                text,
                ids,
                reason["type"],
                ttft_s,
                self._watch.latency_s(),
                self._meta["prompt_tokens"],
                self._meta["completion_tokens"],
                self._meta["cached_tokens"],
                found.get("device", 0),
                found.get("host", 0),
            )
        except KeyError as error:
            raise NonsenseError(
                f"{self._what}: the answer is incomplete", f"meta_info has no {error}"
            ) from error

    def _whole(self) -> tuple[str, tuple[int, ...]]:
        # Started with --incremental-streaming-output the server sends parts, else all so far.
        if len(self._ids[-1]) == self._meta["completion_tokens"]:
            return self._text[-1], tuple(self._ids[-1])
        return "".join(self._text), tuple(one for part in self._ids for one in part)


def _lacking(error: Exception, event: Mapping[str, Any]) -> str:
    cause = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
    return f"{cause}; it begins {str(event)[:120]!r}"
