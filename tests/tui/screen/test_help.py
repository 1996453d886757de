from support.top_pictures import text_of, view_of

from kvflow.frames import State
from kvflow.tui.screen.help import draw
from kvflow.tui.screen.keys import MAIN, names


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


def test_help_has_the_language_of_filters():
    assert "state:TEXT why:TEXT" in text_of(draw(view_of([]), MAIN))


def test_help_in_ascii_is_ascii():
    assert text_of(draw(view_of([], plain=True), MAIN)).isascii()
