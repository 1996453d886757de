"""A table of what a view has, of which only the rows on the screen are ever made."""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar, overload

from kvflow.tui.screen.columns import Column, Placed, header, line_of, place
from kvflow.tui.screen.ink import Line
from kvflow.tui.screen.listing import Listing
from kvflow.tui.screen.view import View
from kvflow.tui.words import NO_FRAME

Widths = Mapping[str, int]
"""Cells that each column has got, by name; columns without room are absent."""


class Row(NamedTuple):
    """One row, by column name."""

    cells: Mapping[str, Line]
    node: int | None = None  # of the tree, if the row is about one


Thing = TypeVar("Thing")


class Rows(Sequence[Row], Generic[Thing]):
    """Rows that are made when they are looked at.

    Args:
        things: what they are about, in their order.
        make: makes one.
    """

    def __init__(self, things: Sequence[Thing], make: Callable[[Thing], Row]) -> None:
        self._things, self._make = things, make

    def __len__(self) -> int:
        return len(self._things)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self._make(thing) for thing in self._things[index]]
        return self._make(self._things[index])


Fill = Callable[[View, Widths], Sequence[Row]]


class Table(Listing):
    """Shows rows; while there are none, the sentence that says so.

    Args:
        columns: what stands in a row.
        fill: makes the rows of a view. While the table is hidden it is not called.
        empty: shown instead of no rows.
        id: of the widget.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        fill: Fill,
        empty: str,
        *,
        id: str,  # noqa: A002 - Textual's name
    ) -> None:
        super().__init__(id=id)
        self._columns = tuple(columns)
        self._fill = fill
        self._empty = empty
        self._view: View | None = None
        self._rows: Sequence[Row] = ()
        self._placed: tuple[int, list[Placed]] = (-1, [])

    def show(self, view: View) -> None:
        """Show this view from now on; the cursor keeps its place."""
        self._view = view
        if self.room.width:
            self.rows_changed()

    def rows_changed(self) -> None:
        """Make the rows anew."""
        if self._view is not None:
            widths = {column.name: width for column, width in self.placed(self.room.width)}
            self._rows = self._fill(self._view, widths)
        super().rows_changed()

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor."""
        return self._rows[self.cursor] if self.cursor < len(self._rows) else None

    def row_count(self) -> int:
        """As many as the view has."""
        return len(self._rows)

    def row_version(self, index: int) -> object:
        """What stands in the row: nothing else can change."""
        return tuple((name, *cell) for name, cell in self._rows[index].cells.items())

    def row_line(self, index: int, placed: list[Placed]) -> Line:
        """The cells of one row."""
        return line_of(placed, self._rows[index].cells)

    def empty(self) -> str:
        """What was given for this case, once anything is known."""
        return self._empty if self._view and self._view.store.frame else NO_FRAME

    def header_line(self, placed: list[Placed]) -> Line:
        """The titles."""
        return header(placed)

    def placed(self, width: int) -> list[Placed]:
        """The columns that there is room for."""
        if self._placed[0] != width:
            self._placed = (width, place(self._columns, width))
        return self._placed[1]
