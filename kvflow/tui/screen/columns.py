"""Columns of a table: which of them there is room for, and one line through them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kvflow.tui.screen.ink import Ink, Line, Piece, fit, shorten, width_of

_GAP = 1


class Column(NamedTuple):
    """One column of a table."""

    name: str
    title: str
    width: int  # in cells; the least width for the column that stretches
    right: bool = True  # aligned to the right, as numbers are
    stretch: bool = False  # takes the room that is left
    rank: int = 0  # where there is no room for all, the highest goes first; 0 stays


class Placed(NamedTuple):
    """A column, and the width that it got."""

    column: Column
    width: int


def place(columns: Sequence[Column], width: int) -> list[Placed]:
    """The columns that fit into `width` cells, in their order; what is left goes to `stretch`.

    The column of least rank stays, however narrow it gets. Of equals, the last one goes first.
    """
    kept = list(columns)
    while len(kept) > 1 and _needed(kept) > width:
        kept.remove(max(reversed(kept), key=lambda column: column.rank))
    if len(kept) == 1:
        return [Placed(kept[0], width)]
    spare = width - _needed(kept)
    left = sum(column.stretch for column in kept)
    placed = []
    for column in kept:
        extra = spare // left if column.stretch else 0
        spare, left = spare - extra, left - column.stretch
        placed.append(Placed(column, column.width + extra))
    return placed


def _needed(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + _GAP * (len(columns) - 1)


def line_of(placed: Sequence[Placed], cells: Mapping[str, Line]) -> Line:
    """One row: each cell aligned in its column, absent ones blank."""
    line: Line = []
    for column, width in placed:
        if line:
            line.append(Piece(" " * _GAP))
        cell = cells.get(column.name, [])
        spare = width - width_of(cell)
        line += fit([Piece(" " * spare), *cell] if column.right and spare > 0 else cell, width)
    return line


def header(placed: Sequence[Placed], sorted_by: str | None = None, arrow: str = "") -> Line:
    """The titles; the column that rows are sorted by carries the arrow."""
    cells: dict[str, Line] = {}
    for column, width in placed:
        mark = arrow if column.name == sorted_by else ""
        title = shorten(column.title, width - len(mark), "")
        cells[column.name] = [Piece(f"{title}{mark}", Ink.ACCENT if mark else Ink.MUTED)]
    return line_of(placed, cells)
