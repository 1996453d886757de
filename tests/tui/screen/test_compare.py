"""Two recordings side by side: every key, and what it looks like."""

from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.recordings import recorded
from support.svg_snapshot import SvgSnapshot, normalised
from support.top_app import NARROW, NOON, ROOMY, WIDE, page, text
from support.top_scene import frame_at, life

from kvflow.tui.options import ScreenOptions
from kvflow.tui.recording import Recording
from kvflow.tui.screen.compare import CompareApp, CompareScreen
from kvflow.tui.screen.help import Help
from kvflow.tui.screen.picture import Picture

SIZES = {"80x24": NARROW, "120x40": WIDE, "200x60": ROOMY}


@pytest.fixture
def compared(tmp_path):
    """The program, paused at the end of two recordings of which one was slower to hit."""
    slow = [
        frame_at(at, mode="evict", boot="b", counters=frame_at(at // 2).counters)
        for at in range(60)
    ]
    recordings = [
        (
            Path("monday.kvtrace"),
            Recording(recorded(tmp_path / "a", slow, "http://127.0.0.1:30000")),
        ),
        (
            Path("friday.kvtrace"),
            Recording(recorded(tmp_path / "b", life(60), "http://127.0.0.1:30000")),
        ),
    ]

    @asynccontextmanager
    async def made(size=WIDE, **options):
        app = CompareApp(
            recordings,
            1.0,
            options=ScreenOptions(**options),
            folder=tmp_path / "files",
            clock=lambda: NOON,
        )
        for store, (_, recording) in zip(app._stores, recordings, strict=True):
            for number in range(59):
                store.apply(recording.frame(number))
        app.pair.step(100)
        async with app.run_test(size=size) as pilot:
            for _ in range(40):
                await pilot.pause(0.02)
                if all(store.frame.seq == 60 for store in app._stores):
                    break
            app._show()
            await pilot.pause()
            yield pilot

    return made


@pytest.mark.parametrize("size", SIZES)
async def test_comparison_looks_as_it_did(compared, snapshot, size):
    async with compared(SIZES[size]) as pilot:
        picture = normalised(pilot.app.export_screenshot(simplify=True))
    assert picture == snapshot.use_extension(SvgSnapshot)


async def test_comparison_names_both_and_tells_the_difference(compared):
    async with compared() as pilot:
        shown = text(pilot)
        assert "REPLAY 0:59/0:59 PAUSED" in shown[0]
        assert shown[1].split()[:2] == ["A", "monday.kvtrace:"]
        assert "mode evict" in shown[1]
        assert shown[2].split()[:2] == ["B", "friday.kvtrace:"]
        assert "2 times A's" in page(pilot)


async def test_comparison_behind_the_end_of_the_shorter_one_is_of_the_time_that_both_have(tmp_path):
    recordings = [
        (Path(name), Recording(recorded(tmp_path / name, life(seconds))))
        for name, seconds in (("short", 10), ("long", 60))
    ]
    app = CompareApp(recordings, 1.0, options=ScreenOptions(), folder=tmp_path)
    app.pair.step(100)
    async with app.run_test(size=WIDE) as pilot:
        while not all(store.frame for store in app._stores):
            await pilot.pause(0.02)
        app._show()
        await pilot.pause()
        shown = text(pilot)
        assert "REPLAY 0:59/0:59" in shown[0]
        assert "short ended at 0:09: " in shown[1]
        assert "ended" not in shown[2]
        [evicted] = [line for line in shown if "evicted from the device" in line]
        assert "the same" in evicted


async def test_comparison_in_ascii_is_ascii(compared):
    async with compared(ascii=True) as pilot:
        assert page(pilot).isascii()


async def test_p_goes_on_and_pauses(compared):
    async with compared() as pilot:
        await pilot.press("p")
        assert not pilot.app.pair.paused
        await pilot.press("Z")
        assert pilot.app.pair.paused


async def test_plus_and_minus_change_the_speed_of_both(compared):
    async with compared() as pilot:
        await pilot.press("plus", "plus")
        assert [side.speed for side in pilot.app.pair.sides] == [4.0, 4.0]
        await pilot.press("minus")
        assert pilot.app.pair.speed == 2.0


async def test_brackets_and_braces_move_both(compared):
    async with compared() as pilot:
        pair = pilot.app.pair
        await pilot.press("left_square_bracket")
        assert [side.position_s for side in pair.sides] == [58.0, 58.0]
        await pilot.press("left_curly_bracket")
        assert pair.position_s == 48.0
        await pilot.press("right_curly_bracket", "right_square_bracket")
        assert [side.position_s for side in pair.sides] == [59.0, 59.0]


async def test_capital_w_lets_the_charts_of_both_look_back_further(compared):
    async with compared() as pilot:
        await pilot.press("W")
        assert {
            pilot.app.screen.query_one(f"#link-{one}", Picture).border_subtitle for one in "AB"
        } == {"5 min"}


async def test_charts_of_the_link_have_one_axis(compared):
    async with compared(ROOMY) as pilot:
        axes = [line for line in text(pilot) if "H2D" in line]
        assert axes
        assert all(line.count("0 to 2") == 2 for line in axes)


async def test_help_lists_the_keys_that_have_a_meaning_here(compared):
    async with compared() as pilot:
        await pilot.press("question_mark")
        assert isinstance(pilot.app.screen, Help)
        assert "10 s back" in page(pilot)
        assert "copy the node's id" not in page(pilot)


async def test_comparison_has_no_list_of_commands_which_its_help_does_not_know(compared):
    async with compared() as pilot:
        await pilot.press("ctrl+p")
        await pilot.pause()
        assert isinstance(pilot.app.screen, CompareScreen)


async def test_capital_t_offers_themes(compared):
    async with compared() as pilot:
        await pilot.press("T")
        await pilot.pause(0.3)
        assert "ansi-dark" in page(pilot) or "atom-one-dark" in page(pilot)


async def test_ctrl_s_saves_the_comparison_as_svg(compared, tmp_path):
    async with compared() as pilot:
        await pilot.press("ctrl+s")
    assert "friday" in (tmp_path / "files" / "top-20260102-123005.svg").read_text()


@pytest.mark.parametrize("key", ["q", "ctrl+q", "ctrl+c"])
async def test_quit_key_ends_the_comparison(compared, key):
    async with compared() as pilot:
        await pilot.press(key)
        await pilot.pause()
        assert not pilot.app.is_running
