"""SIGTERM ends a bench as Ctrl-C does: what was measured is kept."""

import asyncio
import signal
from types import FrameType, TracebackType
from typing import Any, Self


class Ending:
    """Makes SIGTERM do what SIGINT does while its context lasts. Main thread only.

    Attributes:
        terminated: whether SIGTERM has come.
    """

    def __init__(self) -> None:
        self.terminated = False
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGTERM, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.terminated = True
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
