"""What is told of a machine. Whatever cannot be read is None: not available, never a guess."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU at one moment.

    Bandwidths are those of the whole PCIe link, from the GPU's view: what it receives is
    host to device. They are means over a short time that the driver chooses.
    """

    index: int
    name: str
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    busy: float | None = None  # share of time in which a kernel ran, 0 to 1
    pcie_rx_gbps: float | None = None  # GB/s, 10^9 bytes; host to device
    pcie_tx_gbps: float | None = None  # device to host
    link_generation: int | None = None  # of PCIe, now; it falls when the GPU idles
    link_generation_max: int | None = None
    link_width: int | None = None  # lanes
    link_width_max: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: int | None = None
    throttled_by: tuple[str, ...] = ()  # in words; idling is none
    processes: tuple[int, ...] | None = None  # ids of those that compute on it


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """One process of the server."""

    pid: int
    name: str
    resident_bytes: int
    cpu: float | None  # cores in use since the last sample


@dataclass(frozen=True, slots=True)
class Host:
    """The machine that the console runs on."""

    memory_total_bytes: int
    memory_available_bytes: int
    cpus: int
    cpu: float | None  # share of all cores in use since the last sample, 0 to 1
    processes: tuple[ServerProcess, ...] = ()  # of the server, if it runs here


@dataclass(frozen=True, slots=True)
class Sample:
    """A machine at one moment.

    Attributes:
        time_s: Unix time.
        gpus: all that the driver shows.
        why_no_gpu: one line where there is none; empty where there is one.
        host: None until it has been read.
    """

    time_s: float
    gpus: tuple[Gpu, ...] = ()
    why_no_gpu: str = ""
    host: Host | None = field(default=None)

    @property
    def server_gpus(self) -> tuple[Gpu, ...]:
        """Those that a process of the server computes on; none where that is not known."""
        own = {process.pid for process in self.host.processes} if self.host else set()
        return tuple(gpu for gpu in self.gpus if own.intersection(gpu.processes or ()))
