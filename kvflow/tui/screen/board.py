"""The panels around the tree: charts above it, tables and the machine beside it."""

from collections.abc import Iterator
from types import ModuleType
from typing import Final, TypeVar

from rich.text import Text
from textual.containers import Vertical
from textual.widget import Widget

from kvflow.errors import printable
from kvflow.tui.screen.panels import (
    agents,
    ages,
    evictions,
    hits,
    link,
    machine,
    pools,
    prefetches,
    waiting,
)
from kvflow.tui.screen.picture import Picture
from kvflow.tui.screen.table import Table
from kvflow.tui.screen.tree_view import TreeView
from kvflow.tui.screen.view import View

_OF_NOW: Final = ("pools", "machine-picture")
"""Charts that do not look back."""

WidgetType = TypeVar("WidgetType", bound=Widget)


class Board:
    """All panels. Those that a person can show and hide carry their digit in the title.

    Attributes:
        charts: what goes on while tables are paused.
    """

    def __init__(self) -> None:
        self.charts = (
            titled(Picture(link.draw, id="link"), "1 link GB/s"),
            titled(Picture(pools.draw, id="pools"), "KV pools"),
            titled(Picture(hits.draw, id="hits"), "prompt tokens found"),
            titled(Picture(ages.draw, id="ages"), "KV age"),
        )
        self._agents = _table(agents, "2 agents", "agents-table")
        self._prefetches = _table(prefetches, "3 prefetches", "prefetches")
        self._waiting = _table(waiting, "waiting calls", "waiting")
        self._evictions = _table(evictions, "4 evictions", "evicted")
        self._machine = titled(Picture(machine.draw, id="machine-picture"), "5 machine")

    def panels(self) -> Iterator[Vertical]:
        """What stands beside the tree, from the top."""
        yield Vertical(self._agents, id="agents", classes="panel")
        yield Vertical(self._prefetches, self._waiting, id="queue", classes="panel")
        yield Vertical(self._evictions, id="evictions", classes="panel")
        yield Vertical(self._machine, id="machine", classes="panel")

    def show_tables(self, view: View) -> None:
        """Show a view in all tables."""
        for table in (self._agents, self._prefetches, self._waiting, self._evictions):
            show_where_seen(table, view)
        titled(self._agents, f"2 {agents.title(view)}")
        summed_up(self._agents, agents.summary(view))
        summed_up(self._prefetches, prefetches.summary(view))
        summed_up(self._evictions, evictions.summary(view))

    def show_charts(self, view: View, window_s: int) -> None:
        """Show a view in all charts, looking back so many seconds."""
        for picture in (*self.charts, self._machine):
            if picture.id not in _OF_NOW:
                summed_up(picture, f"{window_s // 60} min")
            show_where_seen(picture, view._replace(window_s=window_s))

    def show_machine(self, view: View) -> None:
        """Show the machine alone, which works on while no frame comes."""
        show_where_seen(self._machine, view)


def show_where_seen(widget: TreeView | Table | Picture, view: View) -> None:
    """Show a view where it can be seen: what is hidden does no work."""
    if all(one.display for one in widget.ancestors_with_self if isinstance(one, Widget)):
        widget.show(view)
    elif isinstance(widget, TreeView):
        widget.show_later(view)  # its rows hold for one frame only


def titled(widget: WidgetType, title: str) -> WidgetType:
    """The widget, with a title in its border."""
    title = printable(title)
    if widget.border_title != title:  # to set it is to paint all of the widget
        widget.border_title = Text(title)
    return widget


def summed_up(widget: Widget, text: str) -> None:
    """Write a text into the lower border of the widget."""
    if widget.border_subtitle != text:
        widget.border_subtitle = Text(text)


def _table(panel: ModuleType, title: str, name: str) -> Table:
    """The table of a panel's module."""
    return titled(Table(panel.COLUMNS, panel.rows, panel.EMPTY, id=name), title)
