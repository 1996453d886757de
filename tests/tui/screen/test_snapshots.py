"""What every view looks like. Look at the files; update with --snapshot-update."""

import asyncio

import pytest
from support.recordings import recorded
from support.svg_snapshot import SvgSnapshot, normalised
from support.top_app import NARROW, ROOMY, WIDE, shown
from support.top_scene import evictions_at, large_frame, life
from support.top_sources import Scripted

from kvflow.telemetry.model import Gpu, Host, Sample, ServerProcess
from kvflow.tui.options import ScreenOptions
from kvflow.tui.recording import Recording
from kvflow.tui.replay import ReplaySource
from kvflow.tui.screen.table import Table
from kvflow.tui.source import Link, Status

SIZES = {"80x24": NARROW, "120x40": WIDE, "200x60": ROOMY}
GONE = Status(
    Link.DISCONNECTED,
    "DISCONNECTED (retry in 4 s)",
    "connection refused",
    "kvflow serve --recipe FILE starts one",
)


class Machine:
    """What a sampler has, of a machine with a busy GPU."""

    latest = Sample(
        0.0,
        (
            Gpu(
                index=0,
                name="NVIDIA H200",
                memory_total_bytes=150_754_820_096,
                memory_used_bytes=120_259_084_288,
                busy=0.86,
                pcie_rx_gbps=21.4,
                pcie_tx_gbps=3.25,
                link_generation=5,
                link_generation_max=5,
                link_width=16,
                link_width_max=16,
                power_w=512.0,
                power_limit_w=700.0,
                temperature_c=61,
                throttled_by=("power cap",),
            ),
        ),
        host=Host(
            137_438_953_472,
            68_719_476_736,
            16,
            0.31,
            (ServerProcess(1, "sglang::scheduler", 9_663_676_416, 1.2),),
        ),
    )


@pytest.fixture
def pictures(snapshot):
    return snapshot.use_extension(SvgSnapshot)


async def look(source=None, size=WIDE, keys=(), theme="kvflow", **other):
    async with shown(source, size, **other) as pilot:
        pilot.app.theme = theme
        await pilot.press(*keys)
        return await picture_of(pilot)


async def picture_of(pilot):
    await pilot.pause()
    await pilot.app.animator.wait_until_complete()
    return normalised(pilot.app.export_screenshot(simplify=True))


async def play(pilot, source, seconds):
    """Show one frame after the other."""
    for second in seconds:
        source.seek(second)
        async with asyncio.timeout(20):
            while pilot.app._store.frame is None or pilot.app._store.frame.seq != second + 1:
                await pilot.pause(0.01)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "keys",
    [[], ["w"], ["down", "enter"], ["question_mark"]],
    ids=["tree", "workflow", "details", "help"],
)
async def test_view(pictures, size, keys):
    assert await look(size=SIZES[size], keys=keys, telemetry=Machine()) == pictures


@pytest.mark.parametrize("panel", ["1", "2", "3", "4", "5"])
async def test_panel_under_a_narrow_tree(pictures, panel):
    assert await look(size=NARROW, keys=[panel], telemetry=Machine()) == pictures


async def test_panel_that_is_maximised(pictures):
    assert await look(keys=["tab", "tab", "z"]) == pictures


async def test_list_sorted_by_tokens_with_the_largest_first(pictures):
    assert await look(size=NARROW, keys=["t", "greater_than_sign", "I"]) == pictures


async def test_filter_with_an_error(pictures):
    assert await look(size=NARROW, keys=["slash", *"state:hots"]) == pictures


async def test_paused(pictures):
    assert await look(size=NARROW, keys=["p"]) == pictures


async def test_server_gone(pictures):
    assert await look(Scripted(life(60), GONE)) == pictures


async def test_recording_that_is_played(pictures, tmp_path):
    recording = Recording(recorded(tmp_path / "scene.kvtrace", life(60)))
    source = ReplaySource(recording, speed=4.0, clock=lambda: 0.0)
    async with shown(source) as pilot:
        await play(pilot, source, [0, *range(33, 43)])
        assert await picture_of(pilot) == pictures


async def test_eviction_that_is_regretted(pictures):
    newest_first = reversed(evictions_at(59))
    down = next(place for place, record in enumerate(newest_first) if record.regret)
    async with shown() as pilot:
        pilot.app.screen.query_one("#evicted", Table).focus()
        await pilot.press(*["down"] * down, "enter")
        assert await picture_of(pilot) == pictures


async def test_empty(pictures):
    assert await look(Scripted([], Status(Link.CONNECTING, "CONNECTING"))) == pictures


async def test_10000_nodes(pictures):
    assert await look(Scripted([large_frame(10_000)]), keys=["pagedown", "pagedown"]) == pictures


async def test_ascii(pictures):
    assert await look(options=ScreenOptions(ascii=True)) == pictures


async def test_terminals_own_colours(pictures):
    assert await look(keys=["down"], theme="ansi-dark") == pictures
