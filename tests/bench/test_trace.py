import time

import pytest
from support.bench_server import BenchServer, _bench_routes  # noqa: F401

from kvflow.bench.control import steering
from kvflow.bench.trace import watching_a_run


async def watched(fake, log, *notes):
    """A run in which the link notes copies, in seconds from now, after one of the run before."""
    log.write_text("1.0 2.0\n")
    began = time.perf_counter()
    async with steering(fake.url) as control, watching_a_run(control, log, began) as trace:
        now = time.perf_counter()
        with log.open("a") as file:
            file.writelines(f"{now + start} {now + end}\n" for start, end in notes)
    return [(copy.start_s, copy.end_s) for copy in trace.copies]


@pytest.mark.parametrize("mode", [None, "full"])
async def test_watching_a_run_takes_copies_from_the_links_notes_for_every_arm(tmp_path, mode):
    with BenchServer(mode=mode).running() as fake:
        copies = await watched(fake, tmp_path / "log", (0.5, 0.75), (1.5, 2.0))
    assert [end - start for start, end in copies] == pytest.approx([0.25, 0.5], abs=1e-6)
    assert copies[0][0] >= 0.5
    assert copies[1][0] - copies[0][0] == pytest.approx(1.0, abs=1e-6)


async def test_watching_a_run_takes_layers_of_one_copy_together(tmp_path):
    with BenchServer(mode=None).running() as fake:
        copies = await watched(fake, tmp_path / "log", (0.5, 0.6), (0.6, 0.7), (0.704, 0.8))
    assert [end - start for start, end in copies] == pytest.approx([0.3], abs=1e-6)


async def test_watching_a_run_without_a_note_finds_no_copy(tmp_path):
    with BenchServer(mode=None).running() as fake:
        async with (
            steering(fake.url) as control,
            watching_a_run(control, tmp_path / "not there", 0.0) as trace,
        ):
            pass
    assert trace.copies == []
