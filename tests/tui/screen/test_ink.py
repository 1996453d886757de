from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kvflow.tui.screen.ink import Ink, Piece, apart, cut, fit, joined, shorten, width_of

texts = st.text(alphabet="ab é漢●", max_size=12)
lines = st.lists(st.builds(Piece, texts, st.sampled_from(Ink)), max_size=6)


@given(lines, st.integers(0, 40))
def test_fit_any_line_takes_exactly_the_width(line, width):
    assert width_of(fit(line, width)) == width


def test_fit_control_characters_are_seen_and_take_their_room():
    assert fit([Piece("a\x1b[1m\x7f\x85b")], 9) == [Piece("a\ufffd[1m\ufffd\ufffdb"), Piece(" ")]


@given(lines, st.integers(0, 40))
def test_fit_line_that_is_narrower_keeps_its_text_in_front(line, width):
    text = "".join(piece.text for piece in line)
    if cell_len(text) <= width:
        assert "".join(piece.text for piece in fit(line, width)).startswith(text)


@given(lines, st.integers(0, 40))
def test_cut_any_line_takes_exactly_the_width(line, width):
    assert width_of(cut(line, width)) == width


def test_cut_line_that_has_no_room_ends_in_an_ellipsis():
    assert "".join(piece.text for piece in cut([Piece("plan"), Piece("ner")], 6)) == "plann…"
    assert cut([Piece("plan"), Piece("ner")], 7) == [Piece("plan"), Piece("ner")]


def in_ink(line):
    """Each character that can be seen, with its place and ink."""
    inked = [(character, piece.ink) for piece in line for character in piece.text]
    return [(at, *one) for at, one in enumerate(inked) if not one[0].isspace()]


@given(lines)
def test_joined_any_line_looks_the_same(line):
    assert "".join(piece.text for piece in joined(line)) == "".join(piece.text for piece in line)
    assert in_ink(joined(line)) == in_ink(line)


@given(lines)
def test_joined_any_line_has_no_piece_that_could_join_its_neighbour(line):
    inks = [piece.ink for piece in joined(line)]
    assert all(one is not other for one, other in pairwise(inks))
    assert not any(piece.text.isspace() for piece in joined(line)[1:])


def test_joined_gaps_belong_to_what_stands_beside_them():
    cells = [Piece("  "), Piece("12", Ink.STRONG), Piece(" "), Piece("host", Ink.HOST), Piece(" ")]
    assert joined(cells) == [Piece("  12 ", Ink.STRONG), Piece("host ", Ink.HOST)]


@given(texts, st.integers(0, 12))
def test_shorten_any_text_takes_no_more_than_the_width(text, width):
    assert cell_len(shorten(text, width)) <= width


def test_shorten_text_that_fits_stays_as_it_is():
    assert shorten("planner", 7) == "planner"


def test_shorten_text_that_does_not_fit_ends_in_an_ellipsis():
    assert shorten("planner", 5) == "plan…"


def test_apart_puts_each_line_at_its_margin():
    line = apart([Piece("left")], [Piece("right")], 12)
    assert "".join(piece.text for piece in line) == "left   right"


def test_apart_without_room_for_both_keeps_the_left_one():
    line = apart([Piece("left")], [Piece("right")], 8)
    assert "".join(piece.text for piece in line) == "left    "
