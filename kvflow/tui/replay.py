"""Playing a recording as if it were a server: pause, speed, steps, jumps."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

import msgspec

from kvflow.errors import KvflowError
from kvflow.frames import Frame
from kvflow.tui.recording import Recording
from kvflow.tui.source import Link, Status
from kvflow.tui.tree import Tree
from kvflow.tui.words import clock as clock_words

_END_S = 1.0  # that the last frame is shown before it begins again
_LEAST_REST_S = 0.05  # between two frames that are shown, however fast it plays


class ReplaySource:
    """A Source and a Replayable (see `kvflow.tui.source`) that plays a recording.

    At its end it stays on the last frame, or begins again.

    Args:
        recording: what to play.
        speed: how many times faster than it happened; more than 0.
        endless: whether to begin again at the end.
        clock: seconds, for playing.
    """

    interval_s = 1.0  # has no meaning here: frames come as they were recorded

    def __init__(
        self,
        recording: Recording,
        speed: float = 1.0,
        endless: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._recording, self._endless, self._clock = recording, endless, clock
        self.label = recording.label
        self._speed, self._paused = speed, False
        self._from_s, self._since = 0.0, clock()  # a place, and when it was played
        self._shown = -1  # number of the frame that was given last
        self._boot, self._seq = "", 0  # of that frame
        self._tree = Tree()
        self._wake = asyncio.Event()
        self._error: KvflowError | None = None

    @property
    def status(self) -> Status:
        """REPLAY with place, length and speed."""
        if self._error is not None:
            return Status(Link.GARBAGE, "GARBAGE", self._error.why, self._error.hint)
        words = [f"REPLAY {clock_words(self.position_s)}/{clock_words(self.duration_s)}"]
        if self._paused:
            words.append("PAUSED")
        elif self._has_ended():
            words.append("END")
        elif self._speed != 1.0:
            words.append(f"x{self._speed:g}")
        why = "the end of the recording is missing" if self._recording.cut_short else ""
        return Status(Link.REPLAY, " ".join(words), why)

    @property
    def paused(self) -> bool:
        """Whether time stands still."""
        return self._paused

    @paused.setter
    def paused(self, paused: bool) -> None:
        self._go_on_from(self.position_s)
        self._paused = paused

    @property
    def speed(self) -> float:
        """How many times faster than it happened."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self._go_on_from(self.position_s)
        self._speed = speed

    @property
    def position_s(self) -> float:
        """Seconds from the first frame to what is shown now."""
        played = 0.0 if self._paused else (self._clock() - self._since) * self._speed
        return min(self._from_s + played, self.duration_s)

    @property
    def duration_s(self) -> float:
        """Seconds from the first frame to the last."""
        return self._recording.duration_s

    def step(self, frames: int) -> None:
        """Go so many frames on, or back if negative, and pause."""
        number = min(max(0, self._recording.at(self.position_s) + frames), len(self._recording) - 1)
        self.paused = True
        self.seek(self._recording.offsets_s[number])

    def seek(self, position_s: float) -> None:
        """Go to a place, in seconds; what lies outside means the nearer end."""
        self._go_on_from(min(max(0.0, position_s), self.duration_s))

    def refresh(self) -> None:
        """Look at once whether another frame is due."""
        self._wake.set()

    async def frames(self) -> AsyncGenerator[Frame]:
        """The frames as they are due, several in one where they come too fast (see `Source`)."""
        while True:
            if self._endless and self._has_ended() and not self._paused:
                self._go_on_from(0.0)
            due = self._recording.at(self.position_s)
            if due != self._shown and self._error is None:
                try:
                    frame = self._frame(due)
                except KvflowError as error:
                    self._error = error
                else:
                    yield frame
            await self._rest()

    def _has_ended(self) -> bool:
        """Whether the last frame is shown, and nobody has gone back since."""
        last = len(self._recording) - 1
        return self._shown == last == self._recording.at(self.position_s)

    def _go_on_from(self, position_s: float) -> None:
        self._from_s, self._since = position_s, self._clock()
        self._wake.set()

    async def _rest(self) -> None:
        """Wait until another frame is due, or somebody asks for one."""
        await asyncio.sleep(_LEAST_REST_S)
        self._wake.clear()
        due = self._recording.at(self.position_s)
        wait_s: float | None = None
        if due != self._shown and self._error is None:
            return
        if not self._paused and due + 1 < len(self._recording):
            wait_s = (self._recording.offsets_s[due + 1] - self.position_s) / self._speed
        elif self._endless and not self._paused:
            wait_s = _END_S
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._wake.wait()

    def _frame(self, number: int) -> Frame:
        """What leads from the frame that is shown to another one, as one frame."""
        recording, key = self._recording, self._recording.key_before(number)
        first = max(self._shown + 1, key)
        whole = number <= self._shown or recording.frame(first).boot != self._boot
        if whole:
            first, self._tree = key, Tree()
        touched: dict[int, None] = {}
        for one in range(first, number + 1):
            frame = recording.frame(one)
            change = self._tree.apply(frame)
            touched.update(dict.fromkeys(change.before))
            touched.update((node.id, None) for node in change.gone)
        since, self._shown, self._boot = self._seq, number, frame.boot
        self._seq = frame.seq
        nodes = self._tree.nodes
        return msgspec.structs.replace(
            frame,
            nodes=tuple(nodes[one] for one in touched if one in nodes),
            gone=tuple(one for one in touched if one not in nodes),
            delta_since=None if whole else since,
        )
