"""`kvflow top` without a screen: from the first frame to the last."""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from kvflow.cli.console import err
from kvflow.cli.streams import forget
from kvflow.cli.top_print import Printer
from kvflow.errors import ExitCode
from kvflow.tui.live import LiveSource, more_follows
from kvflow.tui.record import Recorder
from kvflow.tui.recording import Recording
from kvflow.tui.source import Link, Status
from kvflow.tui.store import Store
from kvflow.tui.words import plural

_LOOK_S = 0.5  # between two looks at how the source stands
_WHOLE_TREE_S = 30.0  # that a single moment waits for the rest of a large tree
_READ = Status(Link.REPLAY, "REPLAY")


@dataclass(slots=True)
class Session:
    """What is printed, and where it is recorded.

    Attributes:
        printer: what is printed.
        record: a file to record to.
    """

    printer: Printer
    record: Path | None = None

    def watch(self, source: LiveSource) -> None:
        """Print a live server, until one moment was enough or somebody ends it.

        Args:
            source: strict, so that a server that is not there from the start is an error.

        Raises:
            KvflowError: the server cannot be reached or asked, or the recording not written.
        """
        with _while_somebody_reads():
            if self.record is None:
                asyncio.run(self._watch(source, None))
                return
            with (
                Recorder(self.record, source.label) as recorder,
                self._narrated(source, recorder),
            ):
                asyncio.run(self._watch(source, recorder))

    def read(self, recording: Recording) -> None:
        """Print a recording as fast as it can be read; its last moment if one is enough.

        Raises:
            KvflowError: it is damaged.
        """
        store, last = Store(), len(recording) - 1
        single = self.printer.mode.is_single
        # The last two frames make the last rates.
        first = recording.key_before(max(0, last - 1)) if single else 0
        with _while_somebody_reads():
            for number in range(first, last + 1):
                store.apply(recording.frame(number))
                if not single or number == last:
                    self.printer.show(store, _READ, recording.label)

    async def _watch(self, source: LiveSource, recorder: Recorder | None) -> None:
        store, mode = Store(), self.printer.mode
        patience_s = _WHOLE_TREE_S if mode.is_single else source.interval_s
        waiting_since = time.monotonic()
        with _ended_by_sigterm():
            async with _troubles_told(source), aclosing(source.frames()) as frames:
                async for frame in frames:
                    begins_anew = store.tree.complete and frame.delta_since is None
                    store.apply(frame)
                    if begins_anew:  # as after a long pause: its nodes are still to come
                        waiting_since = time.monotonic()
                    if recorder is not None:
                        recorder.add(store)
                    if more_follows(frame) and time.monotonic() - waiting_since < patience_s:
                        continue
                    self.printer.show(store, source.status, source.label)
                    waiting_since = time.monotonic()
                    if mode.is_single:
                        return

    @contextmanager
    def _narrated(self, source: LiveSource, recorder: Recorder) -> Iterator[None]:
        began = time.monotonic()
        err().print(f"recording {source.label} to {self.record}; Ctrl-C ends it", markup=False)
        try:
            yield
        finally:
            seconds = plural(round(time.monotonic() - began), "second")
            what = "nothing: no frame came" if recorder.is_empty else f"{seconds} to {self.record}"
            err().print(f"recorded {what}", markup=False)


@asynccontextmanager
async def _troubles_told(source: LiveSource) -> AsyncIterator[None]:
    """Say on stderr when the server gets into trouble and out of it, for as long as it lasts."""

    async def look() -> None:
        was = Link.LIVE
        while True:
            await asyncio.sleep(_LOOK_S)
            status = source.status
            if status.link not in (was, Link.CONNECTING):
                why = f": {status.why}" if status.why else ""
                err().print(f"kvflow top: {status.label}{why}", markup=False)
                was = status.link

    task = asyncio.create_task(look())
    try:
        yield
    finally:
        task.cancel()


@contextmanager
def _while_somebody_reads() -> Iterator[None]:
    """End in peace when stdout is closed, as by `head`."""
    try:
        yield
    except BrokenPipeError:
        forget(sys.stdout)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let a SIGTERM end the running task in its own time, so that a recording is whole.

    Raises:
        typer.Exit: there was one.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    terminated = False

    def end() -> None:
        nonlocal terminated
        terminated = True
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        yield
    except asyncio.CancelledError:
        if not terminated:
            raise
        raise typer.Exit(ExitCode.TERMINATED) from None
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
