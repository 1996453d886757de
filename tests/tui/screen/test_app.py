import csv
import re
import time
from pathlib import Path
from threading import Event

import pytest
from support.frame_server import FrameServer
from support.top_app import page, shown, text
from support.top_scene import frame_at, life
from support.top_sources import Played, Scripted

from kvflow.errors import KvflowError
from kvflow.frames import Frame
from kvflow.tui.live import LiveSource
from kvflow.tui.options import ScreenOptions
from kvflow.tui.record import Recorder
from kvflow.tui.recording import Recording
from kvflow.tui.screen import app, export
from kvflow.tui.screen.app import TopApp
from kvflow.tui.screen.main import MainScreen

FEW = life(3)


async def next_frame(pilot, frame: Frame) -> None:
    """What the source's next frame does."""
    pilot.app._store.apply(frame)
    pilot.app._show()
    await pilot.pause()


def with_room_for_the_header(begin):
    """A disk that is full from the first frame on."""

    def begun(recorder, path, label):
        write, recorder._write = recorder._write, lambda content: None
        begin(recorder, path, label)
        recorder._write = write

    return begun


# Pause


@pytest.mark.parametrize("key", ["p", "Z"])
async def test_pause_holds_tree_and_tables_while_banner_and_charts_go_on(key):
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press(key)
        await pilot.pause()
        before = text(pilot)
        await next_frame(pilot, frame_at(3, running=77))
        after = text(pilot)
        assert "PAUSED" in after[0]
        assert "running 77" in after[1]
        assert after[4:12] != before[4:12]  # charts
        assert after[14:-1] == before[14:-1]  # tree and tables


async def test_pause_again_shows_what_has_happened_meanwhile():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("p")
        before = text(pilot)
        await next_frame(pilot, frame_at(3))
        await pilot.press("p")
        await pilot.pause()
        assert "LIVE" in text(pilot)[0]
        assert text(pilot)[14:-1] != before[14:-1]


async def test_pause_lets_the_held_tree_be_filtered_and_folded():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("p")
        await next_frame(pilot, frame_at(3, nodes=()))
        await pilot.press("slash", *"state:host", "enter")
        await pilot.pause()
        await pilot.press("left")
        assert len(pilot.app.screen.rows) == 1
        assert len(pilot.app._store.tree.nodes) == 0


async def test_pause_of_a_recording_holds_the_recording_itself():
    source = Played(FEW)
    async with shown(source) as pilot:
        await pilot.press("p")
        assert source.paused
        await pilot.press("p")
        assert not source.paused


# The source


async def test_plus_and_minus_ask_more_or_less_often():
    source = Scripted(FEW)
    async with shown(source) as pilot:
        await pilot.press("plus")
        assert source.interval_s == 0.5
        assert "every 0.5 s" in text(pilot)[0]
        await pilot.press("minus", "minus", "minus", "minus", "minus", "minus")
        assert source.interval_s == 10.0


async def test_plus_and_minus_change_the_speed_of_a_recording():
    source = Played(FEW)
    async with shown(source) as pilot:
        await pilot.press("plus", "plus")
        assert source.speed == 4.0
        await pilot.press("minus", "minus", "minus")
        assert source.speed == 0.5


@pytest.mark.parametrize("key", ["ctrl+r", "f5"])
async def test_refresh_asks_the_source_at_once(key):
    source = Scripted(FEW)
    async with shown(source) as pilot:
        await pilot.press(key)
        assert source.asked == 1


async def test_brackets_step_through_a_recording():
    source = Played(FEW)
    async with shown(source) as pilot:
        await pilot.press("left_square_bracket", "right_square_bracket")
        assert source.steps == [-1, 1]


async def test_braces_jump_10_seconds_in_a_recording():
    source = Played(FEW)
    async with shown(source) as pilot:
        await pilot.press("right_curly_bracket")
        assert source.position_s == 20.0
        await pilot.press("left_curly_bracket", "left_curly_bracket")
        assert source.position_s == 0.0


async def test_brackets_do_nothing_to_a_live_server():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("left_square_bracket", "right_curly_bracket")
        assert pilot.app.is_running


async def first_line_has(pilot, words: str) -> None:
    """Wait until it does."""
    for _ in range(200):
        if words in text(pilot)[0]:
            return
        await pilot.pause(0.05)
    pytest.fail(f"{words!r} never came: {text(pilot)[0]!r}")


async def test_server_that_is_not_there_is_said_and_asked_for_again():
    async with shown(LiveSource("http://127.0.0.1:9")) as pilot:
        await first_line_has(pilot, "DISCONNECTED (retry")
        assert text(pilot)[2].startswith(" hint: ")
        assert "no frame yet" in page(pilot)


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        (401, "UNAUTHORISED (retry"),
        (404, "NOT KVFLOW (retry"),
        (b"<html>hello</html>", "GARBAGE (retry"),
        (b'{"schema_version": 99}', "WRONG VERSION (retry"),
    ],
)
async def test_answer_that_is_no_frame_is_said_and_keys_go_on_working(answer, label):
    with FrameServer([FEW[0], answer]).running() as server:
        async with shown(LiveSource(server.url, interval_s=0.01)) as pilot:
            await first_line_has(pilot, label)
            await pilot.press("t")
            assert pilot.app.screen.tree_view.shown.flat


async def test_answer_that_takes_longer_than_the_interval_is_said_and_keys_go_on_working():
    comes = Event()

    def second(_):
        comes.wait(20)
        return FEW[1]

    def hurried():
        return 20 * time.monotonic()

    with FrameServer([FEW[0], second]).running() as server:
        source = LiveSource(server.url, interval_s=0.25, clock=hurried)
        async with shown(source) as pilot:
            try:
                await first_line_has(pilot, "STALE")
                await pilot.press("t")
                assert pilot.app.screen.tree_view.shown.flat
            finally:
                comes.set()
            await first_line_has(pilot, "LIVE")


# Files


async def test_capital_r_records_until_it_is_pressed_again(tmp_path):
    async with shown(Scripted(FEW), folder=tmp_path) as pilot:
        await pilot.press("R")
        assert "REC top-20260102-123005.kvtrace" in page(pilot)
        pilot.app._source._frames = life(5)[3:]
        await pilot.app._feed()
        await pilot.press("R")
        assert "REC" not in text(pilot)[2]
    assert len(Recording(tmp_path / "top-20260102-123005.kvtrace")) == 3


async def test_capital_r_on_a_full_disk_says_so_and_the_program_goes_on(monkeypatch):
    monkeypatch.setattr(export, "new_path", lambda *_: Path("/dev/full"))
    monkeypatch.setattr(Recorder, "__init__", with_room_for_the_header(Recorder.__init__))
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("R")
        pilot.app._source._frames = life(5)[3:]
        await pilot.app._feed()
        assert [notice.severity for notice in pilot.app._notifications] == ["error"]
        assert "REC" not in text(pilot)[2]


async def test_recording_that_was_asked_for_begins_with_the_first_frame(tmp_path):
    path = tmp_path / "mine.kvtrace"
    async with shown(Scripted(FEW), options=ScreenOptions(record=path)):
        pass
    assert len(Recording(path)) == 3


def test_recording_whose_end_finds_a_full_disk_is_told_of_after_the_screen(monkeypatch):
    monkeypatch.setattr(Recorder, "__init__", with_room_for_the_header(Recorder.__init__))
    screens = []
    monkeypatch.setattr(app, "shown", screens.append)
    options = ScreenOptions(record=Path("/dev/full"))
    with pytest.raises(KvflowError, match=r"(?s)/dev/full.*No space left"):
        app.run(Scripted(FEW), telemetry=None, options=options)
    assert len(screens) == 1


def test_recording_to_where_nothing_can_be_written_fails_before_anything_is_shown(tmp_path):
    options = ScreenOptions(record=tmp_path / "absent" / "mine.kvtrace")
    with pytest.raises(KvflowError, match=r"mine\.kvtrace"):
        TopApp(Scripted(FEW), telemetry=None, options=options, folder=tmp_path)


async def test_ctrl_s_saves_the_screen_as_svg(tmp_path):
    async with shown(Scripted(FEW), folder=tmp_path) as pilot:
        await pilot.press("ctrl+s")
    svg = (tmp_path / "top-20260102-123005.svg").read_text()
    assert svg.startswith("<svg")
    assert "planner" in svg


async def test_capital_e_writes_the_rows_that_are_shown(tmp_path):
    async with shown(Scripted(FEW), folder=tmp_path) as pilot:
        await pilot.press("t", "slash", *"agent:planner", "enter", "E", "E")
    first, second = sorted(tmp_path.glob("*.csv"))
    assert (first.name, second.name) == ("top-20260102-123005-2.csv", "top-20260102-123005.csv")
    [row] = csv.DictReader(second.read_text().splitlines())
    assert (row["id"], row["agents"]) == ("10", "peer/planner")


async def test_file_that_cannot_be_written_is_said_and_the_program_goes_on(tmp_path):
    (tmp_path / "file").write_text("")
    async with shown(Scripted(FEW), folder=tmp_path / "file") as pilot:
        await pilot.press("E", "R", "ctrl+s")
        said = [notice.message for notice in pilot.app._notifications]
        assert ["cannot write into" in message for message in said] == [True] * 3
        assert pilot.app.is_running


@pytest.mark.parametrize("keys", [["E"], ["ctrl+s"], ["R", "R"]])
async def test_file_that_was_written_is_named_as_it_is_even_if_that_looks_like_markup(
    tmp_path, keys
):
    async with shown(Scripted(FEW), folder=tmp_path / "[" / "b]") as pilot:
        await pilot.press(*keys)
        [notice] = pilot.app._notifications
        assert "/[/b]/top-20260102-123005." in notice.message
        assert not notice.markup


# The program


@pytest.mark.parametrize("key", ["ctrl+p", "colon"])
async def test_palette_lists_what_keys_do(key):
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press(key)
        await pilot.press(*"tree or list")
        await pilot.pause(0.3)
        assert "key t" in page(pilot)
        await pilot.press("enter")
        await pilot.pause()
        assert pilot.app.screen.tree_view.shown.flat


async def test_palette_of_a_live_server_has_nothing_for_recordings():
    async with shown(Scripted(FEW)) as pilot:
        live = [command.title for command in pilot.app.get_system_commands(pilot.app.screen)]
    async with shown(Played(FEW)) as pilot:
        played = [command.title for command in pilot.app.get_system_commands(pilot.app.screen)]
    assert set(played) - set(live) == {"A frame back", "A frame on", "10 s back", "10 s on"}
    assert set(live) <= set(played)


async def test_capital_t_offers_themes():
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press("T")
        await pilot.pause(0.3)
        assert "ansi-dark" in page(pilot) or "atom-one-dark" in page(pilot)


@pytest.mark.parametrize("key", ["ctrl+q", "ctrl+c"])
@pytest.mark.parametrize("over", ["question_mark", "enter", "slash", "colon"])
async def test_quit_key_ends_the_program_wherever_one_is(key, over):
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press(over)
        await pilot.pause()
        await pilot.press(key)
        await pilot.pause()
        assert not pilot.app.is_running


@pytest.mark.parametrize("key", ["q", "ctrl+q", "ctrl+c"])
async def test_quit_key_ends_the_program(key):
    async with shown(Scripted(FEW)) as pilot:
        await pilot.press(key)
        await pilot.pause()
        assert not pilot.app.is_running


async def test_source_that_ends_by_a_bug_ends_the_program_with_its_error():
    class Broken(Scripted):
        async def frames(self):
            yield FEW[0]
            raise RuntimeError("a bug")

    with pytest.raises(Exception, match="a bug"):
        async with shown(Broken([])):
            pass


async def test_ansi_theme_draws_the_same_text():
    async with shown(Scripted(FEW)) as pilot:
        before = text(pilot)[:-1]
        pilot.app.theme = "ansi-dark"
        await pilot.pause()
        assert text(pilot)[:-1] == before
        assert isinstance(pilot.app.screen, MainScreen)


async def test_ascii_draws_nothing_beyond_it():
    async with shown(options=ScreenOptions(ascii=True)) as pilot:
        assert page(pilot).isascii()


async def test_no_color_draws_in_shades_of_grey(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with shown(Scripted(FEW)) as pilot:
        svg = pilot.app.export_screenshot()
    inks = re.findall(r"-r\d+ \{ fill: #(\w\w)(\w\w)(\w\w)", svg)
    shades = [[int(part, 16) for part in ink] for ink in inks]
    assert len(shades) > 3
    assert all(max(shade) - min(shade) < 8 for shade in shades)
