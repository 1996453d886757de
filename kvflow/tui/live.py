"""Frames of a running server, asked for once an interval over HTTP."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Final

import msgspec

from kvflow.client.http import Http, NonsenseError, RefusedError, TimedOutError
from kvflow.errors import KvflowError, NotAuthorised, ServerUnreachable
from kvflow.frames import SCHEMA_VERSION, Frame
from kvflow.tui.sane import nonsense
from kvflow.tui.source import Link, Status

NODES_A_FRAME: Final = 500
_ANSWER_S = 10.0  # that an answer may take, or an interval if that is longer
_SLOW_HINT = "look at the server's log; over a slow link ask less often: -d 30"
_STALE_S = 3.0  # without a new frame, or
_STALE_INTERVALS = 2.5
_REST_S = 0.1  # between two parts of one large tree: at most a hundredth of the scheduler's time
_LONGEST_RETRY_S = 15.0
_MOST_DOUBLINGS = 4  # of a second: 16 s, and no more however often it fails
_LABELS = {
    Link.STALE: "STALE",
    Link.DISCONNECTED: "DISCONNECTED",
    Link.UNAUTHORISED: "UNAUTHORISED",
    Link.NOT_KVFLOW: "NOT KVFLOW",
    Link.WRONG_VERSION: "WRONG VERSION",
    Link.GARBAGE: "GARBAGE",
}


class NotKvflowError(ServerUnreachable):
    """A server is there, and kvflow is not at work in it."""


class WrongVersionError(ServerUnreachable):
    """The server's frames are of another schema version."""


class GarbageError(ServerUnreachable):
    """The server answered something that is no frame."""


class LiveSource:
    """A Source that asks a server (see `kvflow.tui.source.Source`).

    A server that fails is asked again after 1, 2, 4 ... 15 s, whatever the reason.

    Args:
        url: base URL of the server.
        api_key: sent as a bearer token.
        interval_s: seconds between two frames.
        strict: whether what goes wrong before the first frame is raised by `frames`.
        clock: seconds, for waiting and ages.
        unix_time: for frames of servers that do not tell the time.

    Attributes:
        failures: in a row, up to now.

    Raises:
        UsageError: the URL is none.
    """

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        interval_s: float = 1.0,
        strict: bool = False,
        clock: Callable[[], float] = time.monotonic,
        unix_time: Callable[[], float] = time.time,
    ) -> None:
        self._http = Http(url, api_key, max(_ANSWER_S, interval_s))
        self.label, self.interval_s = self._http.url, interval_s
        self._strict, self._clock, self._unix_time = strict, clock, unix_time
        self._wake = asyncio.Event()
        self._latest: Frame | None = None
        self._last_at = self._clock()  # of a good frame, or the beginning
        self._error: KvflowError | None = None
        self.failures = 0
        self._retry_at = 0.0

    @property
    def status(self) -> Status:
        """How it stands right now."""
        age = self._clock() - self._last_at
        if self._error is None:
            if age > max(_STALE_S, _STALE_INTERVALS * self.interval_s):
                return Status(Link.STALE, f"STALE {age:.0f} s", "the server has not answered yet")
            return Status(Link.LIVE, "LIVE") if self._latest else _CONNECTING
        link = _link(self._error)
        if link is Link.STALE:
            label = f"STALE {age:.0f} s"
        else:
            label = f"{_LABELS[link]} ({self._retry_words()})"
        return Status(link, label, self._error.why or self._error.what, self._error.hint)

    async def frames(self) -> AsyncGenerator[Frame]:
        """The frames, for ever (see `Source`).

        Raises:
            ServerUnreachable: if strict: nothing answers, or not as kvflow does.
            NotAuthorised: if strict: the server wants another key.
            TimedOutError, RefusedError, NonsenseError: if strict: it does not answer properly.
        """
        async with self._http:
            while True:
                began, before = self._clock(), self._latest
                try:
                    frame = await self._ask()
                except KvflowError as error:
                    if self._strict:
                        raise
                    await self._rest(self._failed(error))
                    continue
                self._strict = False
                if not _repeats(frame, before):
                    yield frame
                wait_s = self.interval_s - (self._clock() - began)
                await self._rest(_REST_S if more_follows(frame) else max(_REST_S, wait_s))

    def refresh(self) -> None:
        """Ask now."""
        self._wake.set()

    async def _ask(self) -> Frame:
        before = self._latest
        frame = await self._get(before.seq if before else 0)
        if frame.delta_since is not None and not _follows(frame, before):
            frame = await self._get(0)  # it was of another start of the server
            if frame.delta_since is not None:
                raise GarbageError(f"{self.label} answered with a change to nothing")
        self._latest, self._last_at = frame, self._clock()
        self._error, self.failures = None, 0
        return frame

    async def _get(self, since: int) -> Frame:
        path = f"/kvflow/snapshot?nodes={NODES_A_FRAME}&since={since}"
        try:
            answer = await self._http.get_raw(path, "kvflow top")
        except RefusedError as error:
            if error.status == 404:
                raise NotKvflowError(
                    f"{self.label} is not a server with kvflow at work",
                    error.why,
                    'start one with "kvflow serve --recipe FILE"',
                ) from error
            raise
        except TimedOutError as error:
            raise TimedOutError(error.what, error.why, _SLOW_HINT) from error
        frame = _frame(answer, self.label)
        if frame.time_s == 0.0:
            return msgspec.structs.replace(frame, time_s=self._unix_time())
        return frame

    def _failed(self, error: KvflowError) -> float:
        self._error, self.failures = error, self.failures + 1
        wait_s = min(_LONGEST_RETRY_S, 2.0 ** min(self.failures - 1, _MOST_DOUBLINGS))
        self._retry_at = self._clock() + wait_s
        return wait_s

    def _retry_words(self) -> str:
        left = self._retry_at - self._clock()
        return f"retry in {left:.0f} s" if left >= 0.5 else "retrying"

    async def _rest(self, seconds: float) -> None:
        self._wake.clear()
        # Python 3.11's wait_for can swallow a cancellation, which would go on for ever.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()


_CONNECTING = Status(Link.CONNECTING, "CONNECTING")


class _Version(msgspec.Struct):
    """What is looked at first: a frame of another version may be of another form."""

    schema_version: int


def _frame(answer: bytes, url: str) -> Frame:
    try:
        version = msgspec.json.decode(answer, type=_Version).schema_version
        if version == SCHEMA_VERSION:
            frame = msgspec.json.decode(answer, type=Frame)
            if why := nonsense(frame):
                raise GarbageError(f"{url} answered a frame that makes no sense", why)
            return frame
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        begins = answer[:80].decode(errors="replace")
        raise GarbageError(
            f"{url} answered something that is no frame", f"{error}; it begins {begins!r}"
        ) from error
    raise WrongVersionError(
        f"{url} sends frames of version {version}",
        f"this kvflow reads version {SCHEMA_VERSION}",
        "use the kvflow top that belongs to the server",
    )


def _follows(frame: Frame, before: Frame | None) -> bool:
    return before is not None and (frame.boot, frame.delta_since) == (before.boot, before.seq)


def _repeats(frame: Frame, before: Frame | None) -> bool:
    """Whether a server that is asked faster than it looks has told the same moment again."""
    return (
        before is not None
        and frame.boot != ""
        and (frame.boot, frame.seq, frame.time_s) == (before.boot, before.seq, before.time_s)
    )


def more_follows(frame: Frame) -> bool:
    """Whether the rest of the tree is to be asked for at once."""
    return frame.nodes_left_out and frame.boot != ""  # a server without deltas sends no rest


def _link(error: KvflowError) -> Link:
    match error:
        case NotKvflowError():
            return Link.NOT_KVFLOW
        case WrongVersionError():
            return Link.WRONG_VERSION
        case GarbageError():
            return Link.GARBAGE
        case NotAuthorised():
            return Link.UNAUTHORISED
        case TimedOutError():
            return Link.STALE
        case RefusedError(status=status) if status >= 500:
            return Link.STALE  # the server is there, its scheduler does not answer
        case NonsenseError() | ServerUnreachable():  # it broke off, or is not there
            return Link.DISCONNECTED
        case _:
            return Link.GARBAGE
