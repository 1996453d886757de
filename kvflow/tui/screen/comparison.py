"""Two recordings as a table: each figure of both, and the difference in words."""

from kvflow.tui.compare import Difference, Side, Unit, differences
from kvflow.tui.screen import figures
from kvflow.tui.screen.columns import Column, header, line_of, place
from kvflow.tui.screen.ink import Ink, Line, Piece, fit, shorten
from kvflow.tui.words import clock

_COLUMNS = (
    Column("figure", "since the recording began", 28, right=False),
    Column("a", "A", 7),
    Column("b", "B", 7),
    Column("words", "  B against A", 26, right=False, stretch=True),
)
_INKS = {1: Ink.DEVICE, -1: Ink.WARNING, 0: Ink.PLAIN}


def draw(a: Side, b: Side, width: int) -> list[Line]:
    """Every figure, a line each, under the titles."""
    placed = place(_COLUMNS, width)
    return [header(placed), *(line_of(placed, _cells(one)) for one in differences(a, b))]


def names(a: Side, b: Side, width: int, ellipsis: str) -> list[Line]:
    """What A and B are, a line each."""
    return [_name("A", a, width, ellipsis), _name("B", b, width, ellipsis)]


def picture(a: Side, b: Side, seconds: float, width: int, ellipsis: str) -> list[Line]:
    """The whole comparison for a terminal without a screen."""
    what = f"the first {clock(seconds)} of two recordings"
    title = [Piece("kvflow top  ", Ink.STRONG), Piece(what)]
    return [title, *names(a, b, width, ellipsis), [], *draw(a, b, width)]


def _name(letter: str, side: Side, width: int, ellipsis: str) -> Line:
    restarted = " (server restarted: figures are of since then)" if side.restarted else ""
    ended = f" ended at {clock(side.ended_s)}" if side.ended_s is not None else ""
    text = f"{side.name}{ended}: {side.label}, mode {side.now.mode}{restarted}"
    line = [Piece(f"{letter}  ", Ink.STRONG), Piece(shorten(text, width - 3, ellipsis))]
    return fit(line, width)


def _cells(one: Difference) -> dict[str, Line]:
    return {
        "figure": [Piece(one.figure.title, Ink.MUTED)],
        "a": [Piece(_value(one.a, one.figure.unit), Ink.STRONG)],
        "b": [Piece(_value(one.b, one.figure.unit), Ink.STRONG)],
        "words": [Piece(f"  {one.words()}", _INKS[one.verdict])],
    }


def _value(value: float | None, unit: Unit) -> str:
    if value is None:
        return "-"
    if unit is Unit.SHARE:
        return figures.share(value)
    return figures.size(value) if unit is Unit.BYTES else figures.tokens(value)
