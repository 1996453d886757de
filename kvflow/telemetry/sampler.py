"""Reading a machine once a second on a thread of its own: some readings of NVML take 20 ms."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from kvflow.telemetry.model import Gpu, Host, Sample


class GpuProbe(Protocol):
    """What can read GPUs. Never raises for what a driver lacks."""

    why_no_gpu: str
    """One line; empty while there is a GPU."""

    def read(self) -> tuple[Gpu, ...]:
        """All GPUs, now."""
        ...

    def close(self) -> None:
        """Let go of the driver."""
        ...


class HostProbe(Protocol):
    """What can read the host."""

    def read(self) -> Host:
        """The host, now."""
        ...


class Sampler:
    """Keeps the latest sample of this machine. Use as a context manager.

    Args:
        gpus: reads GPUs; closed at the end.
        host: reads the host.
        interval_s: seconds between two samples.
        clock: Unix time.

    Attributes:
        latest: the latest sample, or None before the first. Safe to read from any thread.
    """

    def __init__(
        self,
        gpus: GpuProbe,
        host: HostProbe,
        interval_s: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.latest: Sample | None = None
        self._gpus, self._host = gpus, host
        self._interval_s, self._clock = interval_s, clock
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="telemetry", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def sample(self) -> Sample:
        """Read the machine now, on the caller's thread."""
        gpus = self._gpus.read()
        return Sample(self._clock(), gpus, self._gpus.why_no_gpu, self._host.read())

    def _work(self) -> None:
        try:
            while True:
                self.latest = self.sample()
                if self._ended.wait(self._interval_s):
                    return
        finally:
            self._gpus.close()
