"""What a server uses of the machine while it is measured: processors, GPUs, link."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import fmean

import psutil

from kvflow.telemetry.model import Gpu
from kvflow.telemetry.sampler import GpuProbe

_SAMPLE_S = 1.0


def cpu_seconds(port: int) -> float | None:
    """Processor time, so far, of the server that this process started on a port.

    Returns:
        Seconds over all cores, of the server and everything below it; None if there is none.
    """
    spent = None
    for process in _server(port):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            spent = (spent or 0.0) + times.user + times.system
    return spent


def server_pids(port: int) -> set[int]:
    """The processes of the server that this process started on a port."""
    return {process.pid for process in _server(port)}


def _server(port: int) -> Iterator[psutil.Process]:
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            words = child.cmdline()
            if "--port" in words and str(port) in words:
                yield from (child, *child.children(recursive=True))


def visible_gpus(environ: Mapping[str, str]) -> set[int] | None:
    """The GPUs that a server can use, by the driver's numbers; None if they are not told."""
    shown = environ.get("CUDA_VISIBLE_DEVICES", "").replace(" ", "").split(",")
    return {int(one) for one in shown} if all(one.isdecimal() for one in shown) else None


def in_use(
    gpus: Sequence[Gpu], pids: Collection[int], visible: Collection[int] | None
) -> list[Gpu]:
    """The GPUs of a server; none where it is not known which of several they are.

    Args:
        gpus: all of the machine.
        pids: the server's processes. A driver outside a container numbers them otherwise.
        visible: the numbers of those that it can use, if they are known.
    """
    own = [gpu for gpu in gpus if not set(pids).isdisjoint(gpu.processes or ())]
    if own:
        return own
    if visible is not None:
        return [gpu for gpu in gpus if gpu.index in visible]
    return list(gpus) if len(gpus) == 1 else []


@dataclass(slots=True)
class GpuUse:
    """How busy GPUs were, sample by sample; empty without one.

    Attributes:
        busy: share of the time in which a kernel ran, over all GPUs in use.
        h2d_gbps: GB/s from host to device, over all GPUs in use.
    """

    busy: list[float] = field(default_factory=list)
    h2d_gbps: list[float] = field(default_factory=list)

    def note(self, gpus: Sequence[Gpu]) -> None:
        """Add a sample."""
        if busy := [gpu.busy for gpu in gpus if gpu.busy is not None]:
            self.busy.append(fmean(busy))
        if rates := [gpu.pcie_rx_gbps for gpu in gpus if gpu.pcie_rx_gbps is not None]:
            self.h2d_gbps.append(sum(rates))


@asynccontextmanager
async def watching(
    probe: GpuProbe, pids: Collection[int] = (), visible: Collection[int] | None = None
) -> AsyncIterator[GpuUse]:
    """Sample a server's GPUs once a second for as long as the context lasts, on another thread.

    Args:
        probe: reads all of them.
        pids: as of `in_use`.
        visible: likewise.
    """
    use = GpuUse()

    async def sample() -> None:
        while not probe.why_no_gpu:
            gpus = await asyncio.to_thread(probe.read)
            use.note(in_use(gpus, pids, visible))
            await asyncio.sleep(_SAMPLE_S)

    task = asyncio.create_task(sample())
    try:
        yield use
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        probe.close()
