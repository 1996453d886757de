"""The signals that ask kvflow to end, counted instead of obeyed at once."""

import signal
from types import FrameType, TracebackType
from typing import Any, Self

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Counts SIGINT, SIGTERM and SIGHUP while its context lasts. Main thread only.

    Attributes:
        first: the first one that came; it decides the exit status.
        count: how many have come.
    """

    def __init__(self) -> None:
        self.first: signal.Signals | None = None
        self.count = 0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in _ASKING:
            # What was ignored at the start stays ignored: nohup means to survive SIGHUP.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @property
    def exit_status(self) -> int:
        """128 and the number of the first signal, as shells count."""
        return 128 + (self.first or 0)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.first = self.first or signal.Signals(number)
        self.count += 1
