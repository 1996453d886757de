import importlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from kvflow.telemetry.model import Gpu
from kvflow.telemetry.nvml import NvmlGpus, open_gpus

RX, TX = 1, 0
REASONS = {
    "nvmlClocksEventReasonSwPowerCap": 0x4,
    "nvmlClocksEventReasonHwSlowdown": 0x8,
    "nvmlClocksEventReasonSyncBoost": 0x10,
    "nvmlClocksEventReasonSwThermalSlowdown": 0x20,
    "nvmlClocksThrottleReasonHwThermalSlowdown": 0x40,
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": 0x80,
}


class NVMLError(Exception):
    pass


class LibraryNotFoundError(NVMLError):
    pass


class FakeNvml:
    """pynvml as far as it is used; `lacking` names functions that the driver does not support."""

    NVMLError = NVMLError
    NVMLError_LibraryNotFound = LibraryNotFoundError
    NVML_PCIE_UTIL_RX_BYTES, NVML_PCIE_UTIL_TX_BYTES = RX, TX
    NVML_TEMPERATURE_GPU = 0

    def __init__(
        self,
        gpus: int = 1,
        lacking: tuple[str, ...] = (),
        init_error: NVMLError | None = None,
        throttles: int = 0,
    ) -> None:
        self.gpus, self.lacking, self.init_error = gpus, lacking, init_error
        self.is_open = False
        self.answers: dict[str, Any] = {
            "nvmlDeviceGetCount": lambda: self.gpus,
            "nvmlDeviceGetHandleByIndex": lambda index: f"handle {index}",
            "nvmlDeviceGetName": lambda handle: "H200",
            "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=1000, used=250),
            "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=75),
            "nvmlDeviceGetPcieThroughput": lambda handle, way: {RX: 2_000_000, TX: 500_000}[way],
            "nvmlDeviceGetCurrPcieLinkGeneration": lambda handle: 1,
            "nvmlDeviceGetMaxPcieLinkGeneration": lambda handle: 5,
            "nvmlDeviceGetCurrPcieLinkWidth": lambda handle: 8,
            "nvmlDeviceGetMaxPcieLinkWidth": lambda handle: 16,
            "nvmlDeviceGetPowerUsage": lambda handle: 300_500,
            "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 700_000,
            "nvmlDeviceGetTemperature": lambda handle, sensor: 61,
            "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: throttles,
            "nvmlDeviceGetComputeRunningProcesses": lambda handle: [SimpleNamespace(pid=42)],
        }

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's name
        if self.init_error is not None:
            raise self.init_error
        self.is_open = True

    def nvmlShutdown(self) -> None:  # noqa: N802 - NVML's name
        self.is_open = False

    def __getattr__(self, name: str) -> Any:
        if name in self.lacking:
            return self._refuse
        if name in REASONS:
            return REASONS[name]
        if name in self.answers:
            return self.answers[name]
        raise AttributeError(name)

    def _refuse(self, *arguments: object) -> None:
        raise NVMLError("Not Supported")


def test_gpu_is_read_with_its_units() -> None:
    assert NvmlGpus(FakeNvml()).read() == (
        Gpu(
            index=0,
            name="H200",
            memory_total_bytes=1000,
            memory_used_bytes=250,
            busy=0.75,
            pcie_rx_gbps=2.0,
            pcie_tx_gbps=0.5,
            link_generation=1,
            link_generation_max=5,
            link_width=8,
            link_width_max=16,
            power_w=300.5,
            power_limit_w=700.0,
            temperature_c=61,
            throttled_by=(),
            processes=(42,),
        ),
    )


def test_names_that_are_asked_for_are_those_of_the_library() -> None:
    library = importlib.import_module("pynvml")
    missing = [name for name in (*QUESTIONS, *REASONS) if not hasattr(library, name)]
    assert missing == []
    assert {name: getattr(library, name) for name in REASONS} == REASONS
    assert (library.NVML_PCIE_UTIL_RX_BYTES, library.NVML_PCIE_UTIL_TX_BYTES) == (RX, TX)


def test_several_gpus_are_all_read() -> None:
    assert [gpu.index for gpu in NvmlGpus(FakeNvml(gpus=3)).read()] == [0, 1, 2]


QUESTIONS = [name for name in FakeNvml().answers if name != "nvmlDeviceGetCount"]


@pytest.mark.parametrize("lacking", QUESTIONS)
def test_value_that_the_driver_lacks_is_none_and_the_gpu_is_there(lacking: str) -> None:
    [gpu] = NvmlGpus(FakeNvml(lacking=(lacking,))).read()
    [whole] = NvmlGpus(FakeNvml()).read()
    assert gpu.index == 0
    assert gpu != whole or lacking == "nvmlDeviceGetCurrentClocksEventReasons"


def test_gpu_that_answers_nothing_has_a_name_and_nothing_else() -> None:
    assert NvmlGpus(FakeNvml(lacking=tuple(QUESTIONS))).read() == (Gpu(0, "GPU 0"),)


def test_throttle_reasons_are_words_and_idling_is_none() -> None:
    [gpu] = NvmlGpus(FakeNvml(throttles=0x1 | 0x4 | 0x40)).read()
    assert gpu.throttled_by == ("power cap", "heat (hardware)")


def test_open_gpus_gives_a_probe_that_lets_go_of_the_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    probe = open_gpus()
    assert (len(probe.read()), probe.why_no_gpu, nvml.is_open) == (1, "", True)
    probe.close()
    assert not nvml.is_open


@pytest.mark.parametrize(
    ("nvml", "why"),
    [
        (None, "NVML is not installed: pip install 'kvflow[nvml]'"),
        (FakeNvml(init_error=LibraryNotFoundError()), "no NVIDIA driver on this machine"),
        (
            FakeNvml(init_error=NVMLError("Driver Not Loaded")),
            "the NVIDIA driver cannot be asked: Driver Not Loaded",
        ),
        (FakeNvml(gpus=0), "the NVIDIA driver shows no GPU"),
    ],
)
def test_without_a_gpu_one_line_says_why(
    monkeypatch: pytest.MonkeyPatch, nvml: FakeNvml | None, why: str
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    probe = open_gpus()
    assert (probe.read(), probe.why_no_gpu) == ((), why)
    assert nvml is None or not nvml.is_open
