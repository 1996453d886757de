import threading

from support.processes import wait_until

from kvflow.telemetry.model import Gpu, Host, Sample
from kvflow.telemetry.nvml import NoGpus
from kvflow.telemetry.sampler import Sampler

HOST = Host(memory_total_bytes=100, memory_available_bytes=40, cpus=2, cpu=0.5)


class FakeGpus:
    """One GPU that grows hotter with each reading."""

    why_no_gpu = ""

    def __init__(self) -> None:
        self.readings = 0
        self.closed_by: threading.Thread | None = None

    def read(self) -> tuple[Gpu, ...]:
        self.readings += 1
        return (Gpu(0, "fake", temperature_c=self.readings),)

    def close(self) -> None:
        self.closed_by = threading.current_thread()


class FakeHost:
    def read(self) -> Host:
        return HOST


def test_sample_puts_together_what_the_probes_read() -> None:
    sampler = Sampler(FakeGpus(), FakeHost(), clock=lambda: 42.0)
    assert sampler.sample() == Sample(42.0, (Gpu(0, "fake", temperature_c=1),), "", HOST)


def test_sample_without_a_gpu_says_why() -> None:
    sample = Sampler(NoGpus("no driver"), FakeHost()).sample()
    assert (sample.gpus, sample.why_no_gpu) == ((), "no driver")


def test_sampler_keeps_the_latest_sample_and_lets_go_at_its_end() -> None:
    gpus = FakeGpus()
    sampler = Sampler(gpus, FakeHost(), interval_s=0.001)
    assert sampler.latest is None
    with sampler:
        wait_until(lambda: gpus.readings >= 3, "the third sample")
    assert sampler.latest is not None
    assert sampler.latest.gpus[0].temperature_c == gpus.readings
    assert gpus.closed_by is not None
    assert gpus.closed_by is not threading.current_thread()


def test_sampler_ends_at_once_however_long_its_interval() -> None:
    gpus = FakeGpus()
    with Sampler(gpus, FakeHost(), interval_s=3600.0):
        pass
    assert gpus.readings == 1
