"""Two recordings that are played in step: both show the same time since their beginning."""

import time
from collections.abc import Callable

from kvflow.tui.recording import Recording
from kvflow.tui.replay import ReplaySource
from kvflow.tui.source import Status


class Pair:
    """A Replayable (see `kvflow.tui.source`) over two recordings. The shorter one waits at its end.

    Args:
        a: the first recording.
        b: the second one.
        speed: how many times faster than it happened; more than 0.
        clock: seconds, for playing.

    Attributes:
        sides: what plays each, in that order.
    """

    def __init__(
        self,
        a: Recording,
        b: Recording,
        speed: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sides = (
            ReplaySource(a, speed, clock=clock),
            ReplaySource(b, speed, clock=clock),
        )
        self._longer = max(self.sides, key=lambda side: side.duration_s)

    @property
    def status(self) -> Status:
        """That of the longer one; what is wrong with either."""
        troubles = [side.status for side in self.sides if side.status.why]
        return troubles[0] if troubles else self._longer.status

    @property
    def paused(self) -> bool:
        """Whether time stands still."""
        return self._longer.paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        position_s = self.position_s
        for side in self.sides:
            side.paused = paused
        self.seek(position_s)

    @property
    def speed(self) -> float:
        """How many times faster than it happened."""
        return self._longer.speed

    @speed.setter
    def speed(self, speed: float) -> None:
        position_s = self.position_s
        for side in self.sides:
            side.speed = speed
        self.seek(position_s)

    @property
    def position_s(self) -> float:
        """Seconds from the first frames to what is shown now."""
        return self._longer.position_s

    @property
    def duration_s(self) -> float:
        """Seconds that the longer one takes."""
        return self._longer.duration_s

    def step(self, frames: int) -> None:
        """Go so many frames of the longer one on, or back if negative, and pause."""
        self._longer.step(frames)
        self.paused = True

    def seek(self, position_s: float) -> None:
        """Go to a place in both; the shorter one has nothing behind its end."""
        for side in self.sides:
            side.seek(position_s)
