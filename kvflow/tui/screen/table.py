"""A table of a few hundred rows at most, each given as it is to be shown."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kvflow.tui.screen.columns import Column, Placed, header, line_of, place
from kvflow.tui.screen.ink import Ink, Line, Piece
from kvflow.tui.screen.listing import Listing


class Row(NamedTuple):
    """One row, by column name."""

    cells: Mapping[str, Line]
    node: int | None = None  # of the tree, if the row is about one


class Table(Listing):
    """Shows rows; while there are none, the sentence that says so."""

    def __init__(self, columns: Sequence[Column], empty: str, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._columns = tuple(columns)
        self._empty = empty
        self._rows: Sequence[Row] = ()
        self._placed: tuple[int, list[Placed]] = (-1, [])

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows instead; the cursor keeps its place."""
        self._rows = rows
        self.rows_changed()

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor."""
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    def row_count(self) -> int:
        """As many as were given, or the one line that says that there are none."""
        return max(len(self._rows), 1)

    def row_version(self, index: int) -> object:
        """What stands in the row: nothing else can change."""
        if not self._rows:
            return self._empty
        return tuple((name, *cell) for name, cell in self._rows[index].cells.items())

    def row_line(self, index: int, placed: list[Placed]) -> Line:
        """The cells of one row."""
        if not self._rows:
            return [Piece(self._empty, Ink.MUTED)]
        return line_of(placed, self._rows[index].cells)

    def header_line(self, placed: list[Placed]) -> Line:
        """The titles."""
        return header(placed)

    def placed(self, width: int) -> list[Placed]:
        """The columns that there is room for."""
        if self._placed[0] != width:
            self._placed = (width, place(self._columns, width))
        return self._placed[1]
