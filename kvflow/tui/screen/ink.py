"""What is drawn, before it has a colour: pieces of text, each with the ink that it is meant in.

All drawing is done with these, by plain functions; `paint` alone knows Textual's styles.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from kvflow.errors import printable


class Ink(StrEnum):
    """What a piece of text means. The style sheet says what each looks like."""

    PLAIN = "plain"
    MUTED = "muted"
    STRONG = "strong"
    ACCENT = "accent"
    DEVICE = "device"
    MIRRORED = "mirrored"
    HOST = "host"
    LOADING = "loading"
    OFFLOADING = "offloading"
    GHOST = "ghost"
    WARNING = "warning"
    ERROR = "error"


class Piece(NamedTuple):
    """A run of text in one ink."""

    text: str
    ink: Ink = Ink.PLAIN


Line = list[Piece]
"""One line of a picture, from left to right."""


def width_of(line: Iterable[Piece]) -> int:
    """Terminal cells that a line takes."""
    return sum(cell_len(piece.text) for piece in line)


def fit(line: Iterable[Piece], width: int) -> Line:
    """The line, cut or padded with blanks to exactly `width` cells.

    All that is drawn comes through here, so that no name can give a terminal orders.
    """
    fitted: Line = []
    left = width
    for piece in line:
        text = printable(piece.text)
        wanted = cell_len(text)
        taken = min(wanted, left)
        if taken <= 0:
            continue
        text = text if taken == wanted else set_cell_size(text, taken)
        fitted.append(Piece(text, piece.ink))
        left -= taken
    if left > 0:
        fitted.append(Piece(" " * left))
    return fitted


def joined(line: Iterable[Piece]) -> Line:
    """The line in as few pieces as look the same, where blanks look alike in any ink.

    Each piece costs again and again on its way to the terminal, and most of them are gaps.
    """
    found: Line = []
    text, ink, is_blank = "", Ink.PLAIN, True
    for piece in line:
        blank = not piece.text.strip()
        if blank or is_blank or piece.ink is ink:
            text += piece.text
        else:
            found.append(Piece(text, ink))
            text = piece.text
        if not blank:
            ink, is_blank = piece.ink, False
    return [*found, Piece(text, ink)] if text else found


def cut(line: Iterable[Piece], width: int, ellipsis: str = "…") -> Line:
    """The line in exactly `width` cells; what is cut off at its end becomes an ellipsis."""
    pieces = list(line)
    if width_of(pieces) <= width:
        return fit(pieces, width)
    return fit([*fit(pieces, width - cell_len(ellipsis)), Piece(ellipsis, Ink.MUTED)], width)


def shorten(text: str, width: int, ellipsis: str = "…") -> str:
    """The text in at most `width` cells; what is cut off at its end becomes an ellipsis."""
    if cell_len(text) <= width:
        return text
    if width <= cell_len(ellipsis):
        return set_cell_size(text, max(width, 0))
    return set_cell_size(text, width - cell_len(ellipsis)).rstrip() + ellipsis


def apart(left: Line, right: Line, width: int) -> Line:
    """One piece of a line at each margin; the right one gives way where there is no room."""
    gap = width - width_of(left) - width_of(right)
    return fit([*left, Piece(" " * gap), *right], width) if gap >= 1 else fit(left, width)
