import pytest
from support.top_app import shown
from support.top_pictures import text_of, view_of
from support.top_scene import life
from support.top_sources import Scripted

from kvflow.frames import State
from kvflow.tui.screen.help import Help, draw
from kvflow.tui.screen.ink import width_of
from kvflow.tui.screen.keys import GROUPS, MAIN, names
from kvflow.tui.screen.main import MainScreen


def test_help_has_every_key_with_what_it_does():
    lines = text_of(draw(view_of([]), MAIN)).splitlines()
    for binding in MAIN:
        assert any(
            line.split()[: len(names(binding))] == names(binding) and binding.description in line
            for line in lines
        )


def test_help_explains_every_state():
    shown = text_of(draw(view_of([]), MAIN))
    view = view_of([])
    assert all(view.glyphs.states[state] in shown for state in State)


def test_help_says_of_figures_what_is_in_them_and_what_is_not():
    shown = text_of(draw(view_of([]), MAIN))
    assert "in use by two calls or copies" in shown
    for figure in ("running", "runs", "device hits"):
        assert any(line.split("  ")[1:2] == [figure] for line in shown.splitlines())


def test_help_of_figures_fits_a_narrow_terminal():
    lines = draw(view_of([]), MAIN)
    end = text_of(lines).splitlines().index(GROUPS["view"])
    assert max(width_of(line) for line in lines[:end]) <= 70


def test_help_has_the_language_of_filters():
    assert "state:TEXT why:TEXT" in text_of(draw(view_of([]), MAIN))


def test_help_in_ascii_is_ascii():
    assert text_of(draw(view_of([], plain=True), MAIN)).isascii()


@pytest.mark.parametrize("key", ["escape", "question_mark", "h", "f1", "q"])
async def test_key_closes_help_and_nothing_else(key):
    async with shown(Scripted(life(2))) as pilot:
        await pilot.press("question_mark")
        assert isinstance(pilot.app.screen, Help)
        await pilot.press(key)
        await pilot.pause()
        assert pilot.app.is_running
        assert isinstance(pilot.app.screen, MainScreen)
