"""Where frames come from: a live server or a recording, behind one face."""

from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, runtime_checkable

from kvflow.frames import Frame

LEAST_INTERVAL_S: Final = 0.25
"""Between two frames, however often somebody wants them."""
MOST_INTERVAL_S: Final = 60.0
"""A server that nobody asks for longer soon forgets what it has told, and begins anew."""


class Link(StrEnum):
    """How a source stands with what it shows."""

    CONNECTING = "connecting"
    LIVE = "live"
    STALE = "stale"  # the server is there and takes its time
    DISCONNECTED = "disconnected"
    UNAUTHORISED = "unauthorised"
    NOT_KVFLOW = "not kvflow"
    WRONG_VERSION = "wrong version"
    GARBAGE = "garbage"
    REPLAY = "replay"


class Status(NamedTuple):
    """How a source stands right now.

    Attributes:
        link: in one word.
        label: for a header, such as "LIVE", "STALE 4 s", "DISCONNECTED (retry in 3 s)".
        why: what is wrong, a line; empty if nothing is.
        hint: what to do about it, a line.
    """

    link: Link
    label: str
    why: str = ""
    hint: str = ""

    @property
    def is_good(self) -> bool:
        """Whether what is shown is what is."""
        return self.link in (Link.LIVE, Link.REPLAY)


class Source(Protocol):
    """Frames of one server, in order. All of it belongs to one event loop."""

    label: str
    """The URL or the name of the recording, for a header."""

    interval_s: float
    """Seconds between two frames; may be changed at any time."""

    @property
    def status(self) -> Status:
        """How it stands right now; to be asked again as time goes by."""
        ...

    def frames(self) -> AsyncIterator[Frame]:
        """The frames, for ever: nothing that a server does ends it or raises.

        The next one is asked for when this one has been dealt with, so a slow reader gets fewer.
        To be iterated once.
        """
        ...

    def refresh(self) -> None:
        """Do not wait any longer: ask now."""
        ...


@runtime_checkable
class Replayable(Protocol):
    """What can be done to a recording besides (seconds count from its beginning)."""

    paused: bool
    speed: float

    @property
    def position_s(self) -> float:
        """Where it is."""
        ...

    @property
    def duration_s(self) -> float:
        """How long it is."""
        ...

    def step(self, frames: int) -> None:
        """Go so many frames on, or back if negative, and pause."""
        ...

    def seek(self, position_s: float) -> None:
        """Go to a place; it stays paused if it was."""
        ...
