"""The main screen: banner, charts, the tree or the workflow, and the tables beside it."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer

from kvflow.tui.config import PANELS, Preset
from kvflow.tui.filter import EVERYTHING
from kvflow.tui.glyphs import Glyphs
from kvflow.tui.options import ScreenOptions
from kvflow.tui.rows import Rows
from kvflow.tui.screen import banner, keys, workflow
from kvflow.tui.screen.banner import HitFigures, Situation
from kvflow.tui.screen.board import Board, show_where_seen, titled
from kvflow.tui.screen.details import Details
from kvflow.tui.screen.filter_bar import FilterBar
from kvflow.tui.screen.help import Help
from kvflow.tui.screen.ink import Line
from kvflow.tui.screen.listing import Listing
from kvflow.tui.screen.paint import Inked
from kvflow.tui.screen.picture import Picture
from kvflow.tui.screen.table import Table
from kvflow.tui.screen.tree_view import TreeView
from kvflow.tui.screen.view import WINDOWS_S, View

NARROW: Final = 100
"""Columns under which panels stand below the tree, one at a time."""
_ROOMY_COLUMNS, _ROOMY_LINES = 110, 36
"""From here on hits stand in the banner in big figures."""
_LEAST_LINES = {"agents": 0, "evictions": 24, "queue": 30, "charts": 36, "machine": 50}
"""By panel: of the screen, for the panel to be there without being asked for."""


class MainScreen(Inked, Screen[None]):
    """Shows views; knows neither where they come from nor what time it is."""

    BINDINGS: ClassVar[list[BindingType]] = list(keys.MAIN)

    def __init__(
        self,
        options: ScreenOptions,
        glyphs: Glyphs,
        bindings: Sequence[Binding],
        begin: View,
        now: Situation,
    ) -> None:
        super().__init__()
        self._bound = bindings  # what help lists
        self._plain, self._glyphs = options.ascii, glyphs
        self._live = self._shown = begin
        self._now = now
        self._asked: dict[str, bool] = {}  # panels that a person showed or hid
        self._below: str | None = None  # the panel under the tree where it is narrow
        self._flowing = False  # the workflow is there instead of the tree
        self._zoomed: Widget | None = None  # what has the screen for itself, but for the banner
        self._ask_for(options.panels)
        self._window_s = WINDOWS_S[0]
        self.tree_view = titled(TreeView(options, glyphs, id="tree"), "radix tree")
        self._flow = titled(Picture(workflow.draw, id="workflow", scrolls=True), "workflow")
        self._filter_bar = FilterBar(options.filter, id="filter-bar")
        self._banner = Picture(self._draw_banner, id="banner")
        self._figures = HitFigures(id="figures")
        self._board = Board()

    def compose(self) -> ComposeResult:
        """Everything; what there is no room for is hidden later."""
        yield Horizontal(self._banner, self._figures, id="top")
        yield Horizontal(*self._board.charts, id="charts")
        with Horizontal(id="body"):
            yield self.tree_view
            yield self._flow
            yield Vertical(*self._board.panels(), id="side")
        yield self._filter_bar
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Begin with the tree."""
        self.tree_view.focus()
        self._arrange()

    # What is shown

    @property
    def rows(self) -> Rows:
        """The tree's rows, as they are shown."""
        return self.tree_view.rows

    def show(self, live: View, shown: View, now: Situation) -> None:
        """Show a moment.

        Args:
            live: for the charts, which always go on.
            shown: for tree and tables, which a pause holds.
            now: for the banner.
        """
        self._live, self._shown = live, shown
        with self.app.batch_update():
            for widget in (self.tree_view, self._flow):
                show_where_seen(widget, shown)
            self._board.show_tables(shown)
            self._board.show_charts(live, self._window_s)
            self._show_banner(now)
            self.set_class(not now.status.is_good, "-stale")

    def pass_time(self, live: View, now: Situation) -> None:
        """Show what changes without a frame: how the source stands, and the machine."""
        self._live = live
        self.set_class(not now.status.is_good, "-stale")
        self._show_banner(now)
        self._board.show_machine(live)

    def _show_banner(self, now: Situation) -> None:
        tree = self.tree_view
        sort = tree.shown.sort
        arrow = self._glyphs.descending if sort.descending else self._glyphs.ascending
        self._now = now._replace(
            filter=tree.shown.filter.text,
            order=f"{sort.column} {arrow}",
            follow=tree.follow,
            shown=len(tree.rows) if tree.display else self._now.shown,
        )
        self._banner.show(self._live)
        self._figures.show(self._live)

    def _draw_banner(self, view: View, width: int, height: int) -> list[Line]:
        return banner.draw(view, self._now, width, height)

    def _again(self) -> None:
        """Show the same moment in another way."""
        self.show(self._live, self._shown, self._now)

    # Where it is shown

    def on_resize(self) -> None:
        """Another size has room for other panels."""
        self._arrange()

    def _arrange(self) -> None:
        width, height = self.size
        narrow = width < NARROW
        any_beside = False
        for name, least in _LEAST_LINES.items():
            wanted = name == self._below if narrow else self._asked.get(name, height >= least)
            self.query_one(f"#{name}").display = wanted
            any_beside |= wanted and name != "charts"
        self.query_one("#side").display = any_beside
        self.tree_view.display, self._flow.display = not self._flowing, self._flowing
        self._zoom()
        if self.tree_view.display:
            self.tree_view.catch_up()  # before anything is painted
        roomy = width >= _ROOMY_COLUMNS and height >= _ROOMY_LINES
        self.wear(
            {
                "-narrow": narrow,
                "-tall": height >= _LEAST_LINES["machine"],
                "-figures": roomy and not self._plain,
                "-zoomed": self._zoomed is not None,
            }
        )
        self.call_after_refresh(self._again)

    def _zoom(self) -> None:
        """Hide whatever the maximised panel is to have the room of."""
        zoomed = self._zoomed
        for part in self.query("#side Table"):
            part.display = True
        if zoomed is not None:
            kept = set(zoomed.ancestors_with_self)
            for part in self.query("#charts, #body > *, #side > *, #side Table"):
                part.display = part in kept

    @property
    def _main_view(self) -> Widget:
        """What has the most room, and so the keys unless a person gives them to another."""
        return self._zoomed or (self._flow if self._flowing else self.tree_view)

    def take(self, preset: Preset) -> None:
        """Show what a preset says; what it leaves open stays as it is."""
        if preset.filter is not None:
            self._filter_bar.take(preset.filter)
        if preset.sort is not None:
            self.tree_view.sort(preset.sort)
        self._ask_for(preset.panels)
        self._zoomed = None
        self._arrange()

    def _ask_for(self, panels: Sequence[str] | None) -> None:
        if panels is not None:
            self._asked = {name: name in panels for name in PANELS}
            self._below = panels[0] if panels else None

    def action_panel(self, name: str) -> None:
        """Show a panel, or hide it; where it is narrow, instead of the one that was there."""
        panel, self._zoomed = self.query_one(f"#{name}"), None
        if self.size.width < NARROW:
            self._below = None if self._below == name else name
        else:
            self._asked[name] = not panel.display
        if self.focused is not None and panel in self.focused.ancestors:
            self._main_view.focus()
        self._arrange()

    def action_zoom(self) -> None:
        """Give the room of all others to the panel that has the focus, or take it back."""
        zoomable = isinstance(self.focused, Listing | Picture)
        self._zoomed = self.focused if zoomable and self._zoomed is None else None
        self._arrange()

    def action_workflow(self) -> None:
        """The workflow instead of the tree, or the tree again."""
        self._flowing, self._zoomed = not self._flowing, None
        self._arrange()
        self._main_view.focus()

    def action_window(self) -> None:
        """Let the charts look back over another time."""
        following = WINDOWS_S.index(self._window_s) + 1
        self._window_s = WINDOWS_S[following % len(WINDOWS_S)]
        self._board.show_charts(self._live, self._window_s)

    # What of the tree is shown

    def action_filter(self) -> None:
        """Type a filter."""
        self._filter_bar.open()

    def on_filter_bar_changed(self, event: FilterBar.Changed) -> None:
        """Another filter holds."""
        self.tree_view.filter(event.wanted)
        self._show_banner(self._now)

    def on_filter_bar_closed(self) -> None:
        """Back to what is there now."""
        self._main_view.focus()

    def action_back(self) -> None:
        """One thing less: the maximised panel, the workflow, the filter."""
        if self._zoomed is not None:
            self.action_zoom()
        elif self._flowing:
            self.action_workflow()
        elif self.tree_view.shown.filter:
            self._filter_bar.take(EVERYTHING)
        else:
            self.tree_view.focus()

    def action_sort(self, by: int) -> None:
        """Sort by another column."""
        self._change(lambda tree: tree.sort(tree.shown.sort.by(by)))

    def action_invert(self) -> None:
        """Turn the order round."""
        self._change(lambda tree: tree.sort(tree.shown.sort.turned()))

    def action_flat(self) -> None:
        """A list instead of the tree, or the tree again."""
        self._change(TreeView.toggle_flat)

    def action_follow(self) -> None:
        """The selection keeps its line, or no longer."""
        self.tree_view.follow = not self.tree_view.follow
        self._show_banner(self._now)

    def _change(self, change: Callable[[TreeView], None]) -> None:
        change(self.tree_view)
        self._show_banner(self._now)

    # What is asked about a node

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        """Show the details of the node that the row is about."""
        node_id = _node_of(event.listing)
        if node_id is not None:
            self.app.push_screen(Details(self._shown, node_id))

    def action_copy(self) -> None:
        """Copy the id of the node under the cursor."""
        listing = self.focused if isinstance(self.focused, Listing) else self.tree_view
        node_id = _node_of(listing)
        if node_id is not None:
            self.app.copy_to_clipboard(str(node_id))
            self.notify(f"copied {node_id}")

    def action_help(self) -> None:
        """Show all keys."""
        self.app.push_screen(Help(self._shown, self._bound))


def _node_of(listing: Listing) -> int | None:
    if isinstance(listing, TreeView):
        return listing.selected
    row = listing.chosen if isinstance(listing, Table) else None
    return row.node if row else None
