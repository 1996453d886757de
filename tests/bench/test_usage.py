import asyncio
import subprocess
import sys

import pytest

from kvflow.bench import usage
from kvflow.bench.usage import GpuUse, cpu_seconds, in_use, watching
from kvflow.telemetry.model import Gpu
from kvflow.telemetry.nvml import NoGpus


@pytest.fixture
def child():
    # Works for a while in a child of its own, then waits.
    program = (
        "import subprocess, sys; work = 'sum(range(10**7)); print(1, flush=True); input()'; "
        "subprocess.run([sys.executable, '-c', work])"
    )
    command = [sys.executable, "-c", program, "--port", "31999"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_cpu_seconds_are_those_of_the_server_and_all_below_it(child):
    spent = cpu_seconds(31999)
    assert spent is not None
    assert spent > 0


def test_pids_are_those_of_the_server_and_all_below_it(child):
    assert child.pid in usage.server_pids(31999)
    assert len(usage.server_pids(31999)) == 2


def test_cpu_seconds_without_such_a_server_are_unknown(child):
    assert cpu_seconds(31998) is None


def test_gpu_use_is_the_mean_of_busy_and_the_sum_of_links():
    use = GpuUse()
    use.note([Gpu(0, "a", busy=0.5, pcie_rx_gbps=3.0), Gpu(1, "b", busy=1.0, pcie_rx_gbps=4.0)])
    use.note([Gpu(0, "a")])  # tells nothing
    assert (use.busy, use.h2d_gbps) == ([0.75], [7.0])


class Probe:
    why_no_gpu = ""

    def __init__(self):
        self.reads, self.closed = 0, False
        self.loop, self.enough = asyncio.get_running_loop(), asyncio.Event()

    def read(self):
        self.reads += 1
        if self.reads == 4:  # three have been noted
            self.loop.call_soon_threadsafe(self.enough.set)
        return (Gpu(0, "a", busy=0.5),)

    def close(self):
        self.closed = True


async def test_watching_samples_until_the_end_and_lets_go_of_the_driver(monkeypatch):
    monkeypatch.setattr(usage, "_SAMPLE_S", 0)
    probe = Probe()
    async with watching(probe) as use:
        await probe.enough.wait()
    assert probe.closed
    assert len(use.busy) >= 3
    assert set(use.busy) == {0.5}


@pytest.mark.parametrize(
    ("environ", "indices"),
    [
        ({}, None),
        ({"CUDA_VISIBLE_DEVICES": "1, 3"}, {1, 3}),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8932f937"}, None),  # NVML's numbers are not in it
    ],
)
def test_gpus_in_use_are_those_that_the_environment_shows_by_number(environ, indices):
    assert usage.visible_gpus(environ) == indices


@pytest.mark.parametrize(
    ("gpus", "visible", "used"),
    [
        ({0: (7,), 1: (8, 9), 2: (9,)}, {0}, [1, 2]),  # where its processes are
        ({0: (7,), 1: None, 2: ()}, {2}, [2]),
        ({0: (7,), 1: (8,)}, None, []),
        ({0: (7,)}, None, [0]),
        ({}, None, []),
    ],
)
def test_gpus_of_a_server_are_those_of_its_processes_or_those_that_it_can_see(gpus, visible, used):
    every = [Gpu(index, "a", processes=pids) for index, pids in gpus.items()]
    assert [gpu.index for gpu in in_use(every, {9}, visible)] == used


async def test_watching_samples_only_the_gpus_in_use(monkeypatch):
    monkeypatch.setattr(usage, "_SAMPLE_S", 0)

    class Two(Probe):
        def read(self):
            return (*super().read(), Gpu(1, "b", busy=1.0, processes=(9,)))

    probe = Two()
    async with watching(probe, {9}) as use:
        await probe.enough.wait()
    assert set(use.busy) == {1.0}


async def test_watching_without_a_gpu_samples_nothing():
    async with watching(NoGpus("none")) as use:
        await asyncio.sleep(0)
    assert use == GpuUse()
