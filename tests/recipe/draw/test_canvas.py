import pytest

from kvflow.recipe.draw.canvas import Canvas, TangledError, to_ascii


def rows(canvas: Canvas) -> str:
    return "\n".join(canvas.rows())


def test_canvas_lines_of_one_net_join() -> None:
    canvas = Canvas()
    canvas.across("net", 1, 0, 4)
    canvas.down("net", 2, 0, 2)
    canvas.down("net", 0, 1, 2)
    canvas.down("net", 4, 1, 2)
    assert rows(canvas) == "  │\n┌─┼─┐\n│ │ │"


def test_canvas_lines_of_two_nets_cross_without_a_junction() -> None:
    canvas = Canvas()
    canvas.across("one", 1, 0, 4)
    canvas.down("two", 2, 0, 2)
    assert rows(canvas) == "  │\n──│──\n  │"


def test_canvas_lines_of_two_nets_along_each_other_are_refused() -> None:
    canvas = Canvas()
    canvas.down("one", 0, 0, 2)
    with pytest.raises(TangledError):
        canvas.down("two", 0, 1, 3)


def test_canvas_lines_of_two_nets_may_follow_each_other() -> None:
    canvas = Canvas()
    canvas.down("one", 0, 0, 1)
    canvas.down("two", 0, 1, 2)
    assert rows(canvas) == "│\n│\n│"


def test_canvas_text_covers_lines() -> None:
    canvas = Canvas()
    canvas.across("net", 0, 0, 6)
    canvas.write(2, 0, " 1 ")
    assert rows(canvas) == "── 1 ──"


def test_canvas_without_anything_has_no_rows() -> None:
    assert list(Canvas().rows()) == []


def test_to_ascii_has_no_character_above_127() -> None:
    text = "┌─┬┐\n├▼◄┤ →\n└┴┼┘│"
    assert to_ascii(text) == "+-++\n+v<+ ->\n++++|"
    assert to_ascii(text).isascii()
