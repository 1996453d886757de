"""SIGTERM and SIGHUP end a measurement as Ctrl-C does: what was measured is kept."""

import asyncio
import signal
import time
from types import FrameType, TracebackType
from typing import Any, Self

# A terminal that closes sends SIGHUP twice, by its shell and by itself: that asks once.
_AT_ONCE_S = 1.0


class Ending:
    """Makes other signals do what SIGINT does while its context lasts. Main thread only.

    Attributes:
        by: the first of them that has come; SIGINT until then.
    """

    def __init__(self) -> None:
        self.by = signal.SIGINT
        self._asked_at = float("-inf")
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGHUP):
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
        """128 and the number of the signal, as shells count."""
        return 128 + self.by

    def _note(self, number: int, frame: FrameType | None) -> None:
        before, self._asked_at = self._asked_at, time.monotonic()
        if self._asked_at - before < _AT_ONCE_S:
            return
        if self.by is signal.SIGINT:
            self.by = signal.Signals(number)
        # asyncio's own, which cancels what it runs, while it runs something.
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt):
            interrupt(signal.SIGINT, frame)
        else:  # ignored, as in the background of a shell: asyncio has no handler then
            _interrupt()


def _interrupt() -> None:
    """End what asyncio runs, or what runs without it.

    Raised in the middle of a task, KeyboardInterrupt would end the loop before others clean up.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise KeyboardInterrupt from None
    loop.call_soon_threadsafe(_cancel_all)


def _cancel_all() -> None:
    for task in asyncio.all_tasks():
        task.cancel()
