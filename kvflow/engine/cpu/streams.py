"""Streams and events for the CPU with the meaning they have on a GPU.

`torch.cpu` offers both as no-ops, so a copy would be over before anybody could wait for it. Here a
stream that carries copies has a worker thread; an event recorded on it completes when the work
before it has. Everything else (forward passes) runs in the caller, as before: a stream without
copies is always idle. SGLang looks these names up in `torch.cpu` when it calls them, so none of
its classes is patched, and its layer events, acks, fences and ring run unmodified.

An error in a worker is sticky, like a CUDA error: whoever next asks the stream or one of its
events gets it.
"""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

Work = Callable[[], None]


class StreamFailed(RuntimeError):
    """Work on a stream raised; the cause is chained."""


class _Flag(threading.Event):
    """Set once, and since when."""

    at = 0.0

    def set(self) -> None:
        """Now."""
        self.at = time.perf_counter()
        super().set()


class Event:
    """Completes when the work recorded before it on its stream has.

    Args:
        enable_timing: as on a GPU; here every event keeps its time.
    """

    def __init__(self, enable_timing: bool = False) -> None:
        del enable_timing
        self._done = _Flag()
        self._done.set()
        self._stream: Stream | None = None

    def record(self, stream: "Stream | None" = None) -> None:
        """Mark the present end of `stream` (default: the calling thread's current stream)."""
        self._stream = stream or current_stream()
        self._done = self._stream.marker()

    def query(self) -> bool:
        """Whether the work has completed."""
        self._raise_error()
        return self._done.is_set()

    def synchronize(self) -> None:
        """Block until the work has completed."""
        self._done.wait()
        self._raise_error()

    def elapsed_time(self, end: "Event") -> float:
        """Milliseconds from this event to another one; both must be complete.

        Raises:
            RuntimeError: one of them is not.
        """
        if not (self.query() and end.query()):
            raise RuntimeError("an event that is not complete has no time")
        return (end._done.at - self._done.at) * 1000

    def wait(self, stream: "Stream | None" = None) -> None:
        """Make later work of `stream` wait for this event."""
        (stream or current_stream()).wait_event(self)

    def _raise_error(self) -> None:
        if self._stream is not None:
            self._stream.raise_error()


class Stream:
    """Work in order. Gets a worker thread with its first copy; is idle in the caller until then."""

    def __init__(self, priority: int = -1) -> None:
        self._work: queue.SimpleQueue[Work] | None = None
        self._outstanding = 0
        self._lock = threading.Lock()
        self._error: BaseException | None = None

    def submit(self, work: Work) -> None:
        """Run `work` on the worker, after everything submitted before."""
        if self._work is None:
            self._work = queue.SimpleQueue()
            name = f"kvflow-stream-{id(self):x}"
            threading.Thread(target=self._run, args=(self._work,), name=name, daemon=True).start()
        self._put(work)

    def marker(self) -> _Flag:
        """A flag that is set once everything submitted so far is done."""
        flag = _Flag()
        if self._outstanding:
            self._put(flag.set)
        else:
            flag.set()
        return flag

    def wait_event(self, event: Event) -> None:
        """Later work waits for `event`; a stream without a worker is its caller, so that blocks.

        Blocking is what makes a forward pass, which runs in the caller, wait for a layer.
        """
        if self._work is None:
            event.synchronize()
        elif not event.query():
            done = event._done
            self.submit(lambda: (done.wait(), None)[1])

    def wait_stream(self, stream: "Stream") -> None:
        """Later work waits for all work now on `stream`."""
        event = Event()
        event.record(stream)
        self.wait_event(event)

    def record_event(self, event: Event | None = None) -> Event:
        """An event at the present end of this stream."""
        event = event or Event()
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all work is done."""
        return self.record_event().query()

    def synchronize(self) -> None:
        """Block until all work is done."""
        self.record_event().synchronize()

    def raise_error(self) -> None:
        """Raise StreamFailed if any work of this stream has raised, now and from then on."""
        if self._error is not None:
            raise StreamFailed(f"a copy between host and device failed: {self._error}") from (
                self._error
            )

    def _put(self, work: Work) -> None:
        assert self._work is not None
        with self._lock:
            self._outstanding += 1
        self._work.put(work)

    def _run(self, work: "queue.SimpleQueue[Work]") -> None:
        while True:
            item = work.get()
            # Markers still run after an error, so that nobody waits for ever.
            try:
                item()
            except BaseException as error:  # noqa: BLE001 - kept, and raised in whoever asks
                self._error = self._error or error
            with self._lock:
                self._outstanding -= 1


_default = Stream()
_thread = threading.local()


def current_stream(device: Any = None) -> Stream:
    """The calling thread's current stream. torch.cpu keeps one for all threads."""
    stream: Stream = getattr(_thread, "stream", _default)
    return stream


class StreamContext(AbstractContextManager[None]):
    """Makes a stream current in this thread; may be entered again and again."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._previous: list[Stream] = []

    def __enter__(self) -> None:
        self._previous.append(current_stream())
        _thread.stream = self.stream or current_stream()

    def __exit__(self, *_: object) -> None:
        _thread.stream = self._previous.pop()


def install() -> None:
    """Put these in place of torch.cpu's no-ops. Before any Scheduler or ModelRunner is built."""
    torch.cpu.Stream = Stream
    torch.cpu.Event = Event
    torch.cpu.StreamContext = StreamContext
    torch.cpu.stream = StreamContext
    torch.cpu.current_stream = current_stream
