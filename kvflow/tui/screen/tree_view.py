"""The radix tree on the screen: 50,000 nodes, of which only the visible ones are drawn."""

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType

from kvflow.tui.filter import Filter
from kvflow.tui.glyphs import Glyphs
from kvflow.tui.options import ScreenOptions
from kvflow.tui.owners import only_client
from kvflow.tui.rows import Column as Sorted
from kvflow.tui.rows import Row, Rows, Sort, flatten, keep_selection
from kvflow.tui.rows import View as RowsView
from kvflow.tui.screen.columns import Placed, header, line_of, place
from kvflow.tui.screen.ink import Line
from kvflow.tui.screen.listing import Listing
from kvflow.tui.screen.tree_cells import COLUMNS, Look, cells, used_ago
from kvflow.tui.screen.view import View
from kvflow.tui.store import Store
from kvflow.tui.words import NO_FRAME

_TOKENS = attrgetter("tokens")


class _Selection(NamedTuple):
    """A node under the cursor, the rows in which it was, and its line on the screen."""

    node: int
    rows: Rows
    line: int


class TreeView(Listing):
    """Nodes as a tree or as a list, filtered and sorted; the selection is a node, not a row.

    Attributes:
        shown: what of the tree is shown, and how.
        follow: the selected node keeps its line on the screen while the tree moves.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "collapse", "collapse, or to the parent", show=False, id="tree.left"),
        Binding("right", "expand", "expand, or to the first child", show=False, id="tree.right"),
        Binding("space", "fold", "expand or collapse", show=False, id="tree.toggle"),
        Binding("asterisk", "expand_below", "expand all below", show=False, id="tree.expand_all"),
        Binding("C", "collapse_below", "collapse all below", show=False, id="tree.collapse_all"),
        Binding("n", "match(1)", "next match", show=False, id="tree.next_match"),
        Binding("N", "match(-1)", "previous match", show=False, id="tree.previous_match"),
    ]

    def __init__(self, options: ScreenOptions, glyphs: Glyphs, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self._collapsed: set[int] = set()
        self.shown = RowsView(options.filter, options.sort, collapsed=self._collapsed)
        self.follow = False
        self._look = Look(glyphs, options.ascii, 0, None, 0.0, 0)
        self._store = Store()
        self._rows: Rows = flatten(self._store, self.shown)
        self._placed: tuple[int, list[Placed]] = (-1, [])
        self._shown_columns: frozenset[str] = frozenset()
        self._boot: str | None = None
        self._behind: View | None = None  # what came while the tree was hidden
        self._awaited: _Selection | None = None  # while the tree comes anew, in parts

    # What is shown

    def show(self, view: View) -> None:
        """Show the tree of this view; the selected node stays selected."""
        self._behind = None
        self._store = view.store
        if self._boot not in (None, view.boot):
            self._forget_nodes()
        self._boot = view.boot
        frame = view.store.frame
        newest = self._look.newest if frame and frame.delta_since is not None else 0.0
        self.placed(self.room.width)
        self._look = _look(view, newest, with_size="size" in self._shown_columns)
        if self._collapsed and view.store.tree.complete:
            self._collapsed.intersection_update(view.store.tree.nodes)
        self._flatten()

    def show_later(self, view: View) -> None:
        """Show this view, but not before somebody looks: hidden rows are not worth their work."""
        self._behind = view

    def catch_up(self) -> None:
        """Show what came while the tree was hidden."""
        if self._behind is not None:
            self.show(self._behind)

    def filter(self, wanted: Filter) -> None:
        """Show these nodes, and what is above them."""
        self.shown = replace(self.shown, filter=wanted)
        self._flatten()

    def sort(self, by: Sort) -> None:
        """Order siblings, or in a list all nodes, by this."""
        self.shown = replace(self.shown, sort=by)
        self._flatten()

    def toggle_flat(self) -> None:
        """A list instead of a tree, or the tree again."""
        self.shown = replace(self.shown, flat=not self.shown.flat)
        self._flatten()

    @property
    def selected(self) -> int | None:
        """The id of the node under the cursor."""
        return self.rows.id_at(self.cursor) if self.cursor < len(self.rows) else None

    @property
    def rows(self) -> Rows:
        """All rows, as they are shown."""
        self.catch_up()
        return self._rows

    def _forget_nodes(self) -> None:
        """Another server's nodes have the numbers of others: nothing that was chosen holds."""
        self._collapsed.clear()
        self._awaited = None
        self._rows = flatten(Store(), self.shown)
        self._look = self._look._replace(newest=0.0)
        self.cursor = 0
        self.scroll_to(y=0, animate=False)

    def _flatten(self) -> None:
        self.catch_up()
        selection, comes_anew = self._awaited or self._selection(), self._awaited is not None
        self._rows = flatten(self._store, self.shown)
        if selection is None:
            self.rows_changed()
            return
        tree = self._store.tree
        is_missing = not tree.complete and selection.node not in tree.nodes
        self._awaited = selection if is_missing or (comes_anew and not tree.complete) else None
        if not is_missing:
            self.cursor = keep_selection(selection.rows, selection.node, self._rows) or 0
        self.rows_changed()
        if self.follow or comes_anew:
            self.scroll_to(y=self.cursor - selection.line, animate=False)

    def _selection(self) -> _Selection | None:
        selected = self.selected
        if selected is None:
            return None
        return _Selection(selected, self._rows, self.cursor - self.scroll_offset.y)

    # What Listing asks

    def row_count(self) -> int:
        """As many as are not hidden below a collapsed one."""
        return len(self.rows)

    def row_version(self, index: int) -> object:
        """Everything that a row is drawn from and that can change."""
        row, look = self.rows[index], self._look
        node, shown = row.node, self._shown_columns
        return (
            *(node.id, node.state, node.steps, node.why, node.tokens, node.locks, node.hits),
            *(node.agents, node.depth, row.level, row.expanded, row.matched, row.ghost),
            *(look.client, look.bytes_per_token),
            used_ago(node, look) if Sorted.USED in shown else "",
            look.largest if "size" in shown else 0,
        )

    def row_line(self, index: int, placed: list[Placed]) -> Line:
        """The cells of a node."""
        widths = {column.name: width for column, width in placed}
        row = self.rows[index]
        return line_of(placed, cells(row, self._look, widths["id"]))

    def row_component(self, index: int) -> str | None:
        """What has just changed stands out."""
        return "line--changed" if self.rows[index].freshness is not None else None

    def header_line(self, placed: list[Placed]) -> Line:
        """The titles; the one that is sorted by has an arrow."""
        glyphs, sort = self._look.glyphs, self.shown.sort
        arrow = glyphs.descending if sort.descending else glyphs.ascending
        column = Sorted.ID if sort.column is Sorted.AGENTS else sort.column
        return header(placed, column, arrow)

    def empty(self) -> str:
        """Why no node is shown."""
        if self._store.tree.nodes:
            return "no node matches the filter (esc clears it)"
        return "the tree is empty" if self._store.frame else NO_FRAME

    def placed(self, width: int) -> list[Placed]:
        """The columns that there is room for."""
        if self._placed[0] != width:
            self._placed = (width, place(COLUMNS, width))
            self._shown_columns = frozenset(column.name for column, _ in self._placed[1])
        return self._placed[1]

    # Keys

    def _go(self, index: int) -> None:
        self._awaited = None  # the person has chosen another
        super()._go(index)

    def _row(self) -> Row | None:
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def action_collapse(self) -> None:
        """Hide what is below the node; if nothing is shown there, go to its parent."""
        row = self._row()
        if row is None:
            return
        if row.expanded:
            self._collapsed.add(row.node.id)
            self._flatten()
            return
        parent = self.rows.place(row.node.parent)
        if parent is not None:
            self._go(parent)

    def action_expand(self) -> None:
        """Show what is below the node; if that is shown, go to the first of it."""
        row = self._row()
        if row is None or row.expanded is None:
            return
        if row.expanded:
            self._go(self.cursor + 1)
            return
        self._collapsed.discard(row.node.id)
        self._flatten()

    def action_fold(self) -> None:
        """Expand the node, or collapse it."""
        row = self._row()
        if row is not None and row.expanded is not None:
            self._collapsed ^= {row.node.id}
            self._flatten()

    def action_expand_below(self) -> None:
        """Show everything below the node."""
        self._collapsed -= set(self._with_below())
        self._flatten()

    def action_collapse_below(self) -> None:
        """Collapse the node and everything below it."""
        self._collapsed |= set(self._with_below())
        self._flatten()

    def _with_below(self) -> Iterator[int]:
        if (selected := self.selected) is not None:
            yield selected
            yield from (node.id for node in self._store.tree.below(selected))

    def action_match(self, direction: int) -> None:
        """Go to the next row that matches the filter, or the one before; round at the ends."""
        count = len(self.rows)
        for distance in range(1, count + 1):
            index = (self.cursor + direction * distance) % count
            if self.rows[index].matched:
                self._go(index)
                return


def _look(view: View, newest: float, *, with_size: bool) -> Look:
    frame, nodes = view.store.frame, view.store.tree.nodes
    latest = max((node.last_access for node in frame.nodes), default=0.0) if frame else 0.0
    return Look(
        glyphs=view.glyphs,
        plain=view.plain,
        bytes_per_token=frame.bytes_per_token if frame else 0,
        client=only_client(frame.agents) if frame else None,
        newest=max(latest, newest),
        largest=max(map(_TOKENS, nodes.values()), default=0) if with_size else 0,
    )
