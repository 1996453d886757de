import pytest
from rich.cells import cell_len

from kvflow.frames import State
from kvflow.tui.glyphs import ASCII, GHOST_LETTER, LETTERS, UNICODE, Glyphs


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_every_state_and_a_ghost_look_different_and_take_one_cell(glyphs: Glyphs) -> None:
    marks = [*(glyphs.states[state] for state in State), glyphs.ghost]
    assert len(set(marks)) == len(State) + 1
    assert {cell_len(mark) for mark in [*marks, *glyphs.bar, glyphs.locked]} == {1}


def test_every_state_and_a_ghost_have_a_letter_of_their_own() -> None:
    assert len({*(LETTERS[state] for state in State), GHOST_LETTER}) == len(State) + 1


def test_ascii_glyphs_are_ascii() -> None:
    texts = [*ASCII.states.values(), *ASCII.bar, ASCII.ghost, ASCII.locked, ASCII.expanded]
    assert all(text.isascii() for text in [*texts, ASCII.collapsed, ASCII.ascending])
