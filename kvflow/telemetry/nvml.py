"""GPUs, read through NVML (nvidia-ml-py). What a driver or a board lacks is None."""

from collections.abc import Callable
from typing import Any, TypeVar

from kvflow.telemetry.model import Gpu
from kvflow.telemetry.sampler import GpuProbe

Value = TypeVar("Value")

_KILO, _GIGA = 1e3, 1e9
_THROTTLES = {
    "nvmlClocksEventReasonSwPowerCap": "power cap",
    "nvmlClocksEventReasonHwSlowdown": "hardware slowdown",
    "nvmlClocksEventReasonSyncBoost": "sync boost",
    "nvmlClocksEventReasonSwThermalSlowdown": "heat",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "heat (hardware)",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "power brake",
}


def open_gpus() -> GpuProbe:
    """What can read the GPUs of this machine; one that says why not where there are none."""
    try:
        import pynvml
    except ImportError:
        return NoGpus("NVML is not installed: pip install 'kvflow[nvml]'")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        return NoGpus("no NVIDIA driver on this machine")
    except pynvml.NVMLError as error:
        return NoGpus(f"the NVIDIA driver cannot be asked: {error}")
    probe = NvmlGpus(pynvml)
    if probe.count:
        return probe
    probe.close()
    return NoGpus("the NVIDIA driver shows no GPU")


class NoGpus:
    """Reads nothing, and says why.

    Args:
        why_no_gpu: one line.
    """

    def __init__(self, why_no_gpu: str) -> None:
        self.why_no_gpu = why_no_gpu

    def read(self) -> tuple[Gpu, ...]:
        """None."""
        return ()

    def close(self) -> None:
        """Nothing is held."""


class NvmlGpus:
    """Reads all GPUs that the driver shows.

    PCIe bandwidth takes NVML 20 ms a direction and GPU: read it on a thread of its own.

    Args:
        nvml: the pynvml module, initialised.
    """

    why_no_gpu = ""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self.count: int = self._or(0, nvml.nvmlDeviceGetCount)

    def read(self) -> tuple[Gpu, ...]:
        """All GPUs, now. One that has fallen off the bus has a name and nothing else."""
        return tuple(map(self._gpu, range(self.count)))

    def close(self) -> None:
        """Let go of the driver."""
        self._or(None, self._nvml.nvmlShutdown)

    def _gpu(self, index: int) -> Gpu:
        nvml = self._nvml
        handle = self._or(None, nvml.nvmlDeviceGetHandleByIndex, index)
        if handle is None:
            return Gpu(index, f"GPU {index}")
        memory = self._or(None, nvml.nvmlDeviceGetMemoryInfo, handle)
        rates = self._or(None, nvml.nvmlDeviceGetUtilizationRates, handle)
        running = self._or(None, nvml.nvmlDeviceGetComputeRunningProcesses, handle)
        return Gpu(
            index=index,
            name=self._or(f"GPU {index}", nvml.nvmlDeviceGetName, handle),
            memory_total_bytes=memory.total if memory else None,
            memory_used_bytes=memory.used if memory else None,
            busy=rates.gpu / 100 if rates else None,
            pcie_rx_gbps=self._pcie(handle, nvml.NVML_PCIE_UTIL_RX_BYTES),
            pcie_tx_gbps=self._pcie(handle, nvml.NVML_PCIE_UTIL_TX_BYTES),
            link_generation=self._or(None, nvml.nvmlDeviceGetCurrPcieLinkGeneration, handle),
            link_generation_max=self._or(None, nvml.nvmlDeviceGetMaxPcieLinkGeneration, handle),
            link_width=self._or(None, nvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
            link_width_max=self._or(None, nvml.nvmlDeviceGetMaxPcieLinkWidth, handle),
            power_w=_scaled(self._or(None, nvml.nvmlDeviceGetPowerUsage, handle), 1 / _KILO),
            power_limit_w=_scaled(
                self._or(None, nvml.nvmlDeviceGetEnforcedPowerLimit, handle), 1 / _KILO
            ),
            temperature_c=self._or(
                None, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU
            ),
            throttled_by=self._throttles(handle),
            processes=None if running is None else tuple(process.pid for process in running),
        )

    def _pcie(self, handle: Any, direction: int) -> float | None:
        """GB/s over 20 ms; NVML tells KB/s."""
        rate = self._or(None, self._nvml.nvmlDeviceGetPcieThroughput, handle, direction)
        return _scaled(rate, _KILO / _GIGA)

    def _throttles(self, handle: Any) -> tuple[str, ...]:
        bits = self._or(0, self._nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
        return tuple(
            words for name, words in _THROTTLES.items() if bits & getattr(self._nvml, name)
        )

    def _or(self, absent: Value, ask: Callable[..., Any], *arguments: Any) -> Any | Value:
        """An answer of the driver, or the stand-in for one that it does not give."""
        try:
            return ask(*arguments)
        except self._nvml.NVMLError:
            return absent


def _scaled(value: int | None, factor: float) -> float | None:
    return None if value is None else value * factor
