from dataclasses import replace

import pytest
from support.top_pictures import inks_of, text_of, view_of
from support.top_scene import frame_at

from kvflow.frames import Pool
from kvflow.telemetry.model import Gpu, Host, Sample, ServerProcess
from kvflow.tui.screen.ink import Ink
from kvflow.tui.screen.panels.machine import draw

GIB = 2**30
GPU = Gpu(
    index=0,
    name="H200",
    memory_total_bytes=10 * GIB,
    memory_used_bytes=8 * GIB,
    busy=0.4,
    pcie_rx_gbps=12.5,
    pcie_tx_gbps=1.25,
    link_generation=4,
    link_generation_max=5,
    link_width=16,
    link_width_max=16,
    power_w=310.0,
    power_limit_w=700.0,
    temperature_c=51,
)
HOST = Host(
    memory_total_bytes=64 * GIB,
    memory_available_bytes=16 * GIB,
    cpus=16,
    cpu=0.25,
    processes=(ServerProcess(1, "sglang", 2 * GIB, 1.5), ServerProcess(2, "scheduler", GIB, 0.5)),
)
# 4 GiB of KV: half of it free, and half of the rest in use.
POOL = Pool(capacity=32_768, free=16_384, evictable=8_192, locked=4_096)


def drawn(sample, **frame):
    told = {"device": POOL, "runs_on": "cuda", **frame}
    return draw(view_of([frame_at(0, **told)], plain=True, sample=sample), 60, 12)


def test_machine_gpu_line_has_load_temperature_and_power():
    first = text_of(drawn(Sample(0.0, (GPU,)))).splitlines()[0]
    assert first.split() == ["GPU", "0", "H200", "busy", "40%", "51", "C", "310/700", "W"]


def test_machine_memory_bar_tells_weights_from_kv():
    rows = text_of(drawn(Sample(0.0, (GPU,), host=HOST))).splitlines()
    assert rows[1] == "%" * 24 + "#" * 6 + "=" * 6 + "." * 12
    assert rows[2].rstrip() == "%rest 4.0Gi  #use 1.0Gi  =idle 1.0Gi  .free 2.0Gi"
    assert rows[3] == "memory 8.0Gi of 10Gi"


@pytest.mark.parametrize(
    ("host", "runs_on"), [(HOST, "cpu"), (HOST, ""), (replace(HOST, processes=()), "cuda")]
)
def test_machine_whose_gpu_may_not_be_the_servers_does_not_guess(host, runs_on):
    rows = text_of(drawn(Sample(0.0, (GPU,), host=host), runs_on=runs_on)).splitlines()
    assert rows[1] == "#" * 48


def test_machine_with_two_gpus_does_not_guess_whose_kv_it_is():
    assert "free" not in text_of(drawn(Sample(0.0, (GPU, GPU), host=HOST)))


def test_machine_nearly_full_memory_is_a_warning():
    lines = drawn(Sample(0.0, (GPU, GPU)))
    assert inks_of(lines, "#" * 48) == {Ink.WARNING}


def test_machine_link_below_its_best_says_what_it_could_be():
    assert "gen4 x16 of gen5 x16" in text_of(drawn(Sample(0.0, (GPU,))))


def test_machine_throttled_gpu_says_by_what():
    gpu = Gpu(index=0, name="H200", throttled_by=("power",))
    assert "throttled by power" in text_of(drawn(Sample(0.0, (gpu,))))


def test_machine_gpu_that_tells_nothing_has_dashes():
    drawn_text = text_of(drawn(Sample(0.0, (Gpu(index=0, name="old"),))))
    assert "busy -" in drawn_text
    assert "H2D - D2H - GB/s" in drawn_text


def test_machine_without_a_gpu_says_why():
    assert text_of(drawn(Sample(0.0, (), "no NVIDIA driver"))) == "no NVIDIA driver"


def test_machine_host_has_memory_cpu_and_the_server():
    rows = text_of(drawn(Sample(0.0, host=HOST))).splitlines()
    assert "memory 48Gi of 64Gi" in rows[0]
    assert "CPU 25% of 16 cores" in rows[0]
    assert rows[2] == "server: 2 processes, 3.0Gi, 2.0 cores"


def test_machine_that_is_not_looked_at_says_so():
    assert text_of(drawn(None)) == "not looked at"
