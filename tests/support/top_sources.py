"""Sources of frames for tests of the screens."""

from collections.abc import AsyncIterator, Iterable

from kvflow.frames import Frame
from kvflow.tui.source import Link, Status


class Scripted:
    """A Source that gives its frames at once, then nothing more."""

    def __init__(self, frames: Iterable[Frame], status: Status | None = None) -> None:
        self.label = "http://127.0.0.1:30000"
        self.interval_s = 1.0
        self.status = status or Status(Link.LIVE, "LIVE")
        self.asked = 0
        self._frames = list(frames)

    def past(self) -> list[Frame]:
        """All frames but the last three, which are then not given any more."""
        past, self._frames = self._frames[:-3], self._frames[-3:]
        return past

    async def frames(self) -> AsyncIterator[Frame]:
        """Those that were given."""
        for frame in self._frames:
            yield frame

    def refresh(self) -> None:
        """Counted, nothing else."""
        self.asked += 1


class Played(Scripted):
    """A Replayable that notes what is asked of it."""

    def __init__(self, frames: Iterable[Frame]) -> None:
        super().__init__(frames, Status(Link.REPLAY, "REPLAY 0:10/1:00"))
        self.paused, self.speed = False, 1.0
        self.position_s, self.duration_s = 10.0, 60.0
        self.steps: list[int] = []

    def step(self, frames: int) -> None:
        """Noted."""
        self.steps.append(frames)

    def seek(self, position_s: float) -> None:
        """Taken over."""
        self.position_s = position_s
