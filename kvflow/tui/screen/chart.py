"""Charts in characters: areas of braille dots, columns of shares, bars of parts.

Each takes plain numbers and answers lines of text, top first; none knows where it is shown.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from kvflow.tui.screen.ink import Ink, Line, Piece, width_of

_DOTS = (0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08)
"""Bits of a braille cell, left and right column, from the bottom up."""
_LEVELS = len(_DOTS[0])


class Part(NamedTuple):
    """One part of a whole: how much, drawn with which character."""

    amount: float
    glyph: str
    ink: Ink


def area(
    values: Sequence[float],
    width: int,
    height: int,
    top: float,
    *,
    downwards: bool = False,
    plain: bool = False,
) -> list[str]:
    """The latest values as a filled area, newest at the right edge.

    Args:
        values: one a moment, oldest first; older ones than there is room for are left out.
        width: in cells. A cell shows two values, or with `plain` the larger of two.
        height: in lines.
        top: the value that fills the whole height; larger ones are cut.
        downwards: hang from the upper edge instead of standing on the lower one.
        plain: ASCII characters instead of braille dots.
    """
    latest = list(values[-2 * width :])
    latest = [0.0] * (2 * width - len(latest)) + latest
    levels = [_level(value, top, height * _LEVELS) for value in latest]
    pairs = [(levels[2 * x], levels[2 * x + 1]) for x in range(width)]
    draw = _plain_cell if plain else _braille_cell
    rows = [
        "".join(draw(pair, row * _LEVELS, downwards) for pair in pairs) for row in range(height)
    ]
    return rows if downwards else rows[::-1]


def _level(value: float, top: float, most: int) -> int:
    """Dots that stand for a value; whatever is more than nothing shows as at least one."""
    if value <= 0 or top <= 0:
        return 0
    return min(max(round(value / top * most), 1), most)


def _braille_cell(pair: tuple[int, int], below: int, downwards: bool) -> str:
    bits = 0
    for level, dots in zip(pair, _DOTS, strict=True):
        filled = min(max(level - below, 0), _LEVELS)
        for dot in dots[::-1][:filled] if downwards else dots[:filled]:
            bits |= dot
    return chr(0x2800 + bits) if bits else " "


def _plain_cell(pair: tuple[int, int], below: int, downwards: bool) -> str:
    filled = min(max(max(pair) - below, 0), _LEVELS)
    faint = "'" if downwards else "."
    return " " if filled == 0 else faint if filled < _LEVELS // 2 else ":"


def stacked(columns: Sequence[Sequence[Part]], width: int, height: int) -> list[Line]:
    """Columns of parts on top of each other, first part lowest, newest column at the right edge.

    A column is as high as its parts say, 1 being the whole height; what is left stays blank.
    """
    shown = columns[-width:]
    blank = [Piece(" ")] * height
    drawn = [blank] * (width - len(shown)) + [_column(parts, height) for parts in shown]
    return [_joined([column[row] for column in drawn]) for row in range(height)]


def _column(parts: Sequence[Part], height: int) -> list[Piece]:
    cells: list[Piece] = []
    below = 0.0
    for part in parts:
        below += part.amount
        until = min(round(below * height), height)
        cells += [Piece(part.glyph, part.ink)] * (until - len(cells))
    cells += [Piece(" ")] * (height - len(cells))
    return cells[::-1]


def bar(parts: Sequence[Part], whole: float, width: int) -> Line:
    """Parts of a whole side by side in `width` cells; what is left stays blank.

    Where the parts are more than the whole, their sum is the whole.
    Every part of more than nothing takes at least one cell, so that nothing is hidden by being
    small; the largest part pays for it.
    """
    if whole <= 0:
        return [Piece(" " * width)]
    whole = max(whole, sum(part.amount for part in parts if part.amount > 0))
    cells = [max(round(part.amount / whole * width), int(part.amount > 0)) for part in parts]
    while sum(cells) > width:
        cells[cells.index(max(cells))] -= 1
    line = [Piece(p.glyph * n, p.ink) for p, n in zip(parts, cells, strict=True) if n]
    left = width - sum(cells)
    return [*line, Piece(" " * left)] if left else line


def legend(parts: Sequence[tuple[str, str, Part]], width: int, short: Sequence[str] = ()) -> Line:
    """What each part is and how much, as name and figure; figures alone where it is narrow.

    Args:
        parts: names, figures, and the parts themselves.
        width: in cells.
        short: names for where there is no room for the others, in the order of the parts.
    """
    for names in ([name for name, _, _ in parts], short, [""] * len(parts)):
        line: Line = []
        for name, (_, figure, part) in zip(names, parts, strict=False):
            line.append(Piece(part.glyph, part.ink))
            line += [Piece(f"{name} ", Ink.MUTED)] if name else []
            line.append(Piece(f"{figure}  "))
        if line and width_of(line) - 2 <= width:
            break
    return line


def _joined(line: Line) -> Line:
    """The same line, with neighbours of one ink as one piece."""
    return [
        Piece("".join(piece.text for piece in run), ink)
        for ink, run in groupby(line, key=lambda piece: piece.ink)
    ]
