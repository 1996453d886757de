"""Two recordings side by side on a screen: figures, the difference in words, and charts of each."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Footer

from kvflow.frames import Frame
from kvflow.tui.compare import Side
from kvflow.tui.glyphs import ASCII, UNICODE
from kvflow.tui.options import ScreenOptions
from kvflow.tui.pair import Pair
from kvflow.tui.recording import Recording
from kvflow.tui.replay import ReplaySource
from kvflow.tui.screen import comparison, export, keys
from kvflow.tui.screen.board import summed_up, titled
from kvflow.tui.screen.help import Help
from kvflow.tui.screen.ink import Ink, Line, Piece
from kvflow.tui.screen.paint import Inked
from kvflow.tui.screen.panels import hits, link
from kvflow.tui.screen.picture import Picture
from kvflow.tui.screen.shell import SPEEDS, Shell, beside, shown
from kvflow.tui.screen.view import WINDOWS_S, View
from kvflow.tui.store import Store

_GROUPS: Final = ("source.pause", "source.faster", "source.slower", "replay.", "view.window")
_PROGRAM: Final = ("app.picture", "app.theme", "app.help", "app.quit")
_LINK_LINES: Final = 34
"""Lines of the screen from which the link is shown too."""
_LETTERS: Final = ("A", "B")


def bound(bindings: Sequence[Binding]) -> list[Binding]:
    """The keys that have a meaning here."""
    return [one for one in bindings if (one.id or "").startswith((*_GROUPS, *_PROGRAM))]


class CompareScreen(Inked, Screen[None]):
    """Shows a moment of both; knows neither where it comes from nor how it is played."""

    BINDINGS: ClassVar[list[BindingType]] = list(bound(keys.MAIN))

    def __init__(self, bindings: Sequence[Binding]) -> None:
        super().__init__()
        self._bound = bindings
        self._shown: tuple[View, View] | None = None
        self._window_s = WINDOWS_S[0]
        self._sides: list[Line] = []
        self._differences: Callable[[int], list[Line]] = lambda width: []
        self._top = Picture(lambda view, width, height: self._sides, id="sides")
        self._table = Picture(
            lambda view, width, height: self._differences(width), id="differences"
        )
        self._hits = [
            titled(Picture(hits.draw, id=f"hits-{one}"), f"{one} prompt tokens found")
            for one in _LETTERS
        ]
        self._link = [
            titled(Picture(link.draw, id=f"link-{one}"), f"{one} link GB/s") for one in _LETTERS
        ]

    def compose(self) -> ComposeResult:
        """The table, and below it the charts of both."""
        yield self._top
        yield titled(self._table, "two recordings in step")
        yield Horizontal(*self._hits, classes="charts")
        yield Horizontal(*self._link, classes="charts", id="links")
        yield Footer(compact=True, show_command_palette=False)

    def on_resize(self) -> None:
        """The link needs room of its own."""
        self.query_one("#links").display = self.size.height >= _LINK_LINES

    def show(self, views: tuple[View, View], sides: tuple[Side, Side] | None, status: Line) -> None:
        """Show a moment.

        Args:
            views: of both, for the charts.
            sides: both, for the figures; None while one has no frame.
            status: how they are played.
        """
        self._shown = views
        ellipsis, width = views[0].ellipsis, self._top.room.width
        self._sides = [status]
        if sides is not None:
            self._sides += comparison.names(*sides, width, ellipsis)
            self._differences = partial(comparison.draw, *sides)
        with self.app.batch_update():
            self._top.show(views[0])
            self._table.show(views[0])
            self._show_charts(views)

    def _show_charts(self, views: tuple[View, View]) -> None:
        most = max((_fastest(view, self._window_s) for view in views), default=0.0)
        for view, hits_of, link_of in zip(views, self._hits, self._link, strict=True):
            drawn = view._replace(window_s=self._window_s, least_gbps=most)
            for picture in (hits_of, link_of):
                summed_up(picture, f"{self._window_s // 60} min")
                picture.show(drawn)

    def action_window(self) -> None:
        """Let the charts look back over another time."""
        following = WINDOWS_S.index(self._window_s) + 1
        self._window_s = WINDOWS_S[following % len(WINDOWS_S)]
        if self._shown is not None:
            self._show_charts(self._shown)

    def action_help(self) -> None:
        """Show the keys."""
        if self._shown is not None:
            self.app.push_screen(Help(self._shown[0], self._bound))


def _fastest(view: View, window_s: int) -> float:
    """The fastest point within the window, either way: both charts get the same axis."""
    points = view.store.history.points
    since = points[-1].time_s - window_s if points else 0.0
    return max(
        (max(one.h2d_gbps or 0.0, one.d2h_gbps or 0.0) for one in points if one.time_s >= since),
        default=0.0,
    )


class CompareApp(Shell):
    """`kvflow top --compare` on a terminal.

    Args:
        recordings: both, with the names that the person gave.
        speed: how many times faster than it happened.
        options: how to begin.
        folder: where pictures are written.
        clock: for their names.

    Raises:
        KvflowError: a key that was chosen makes no sense, or a recording is damaged.
    """

    def __init__(
        self,
        recordings: Sequence[tuple[Path, Recording]],
        speed: float,
        *,
        options: ScreenOptions,
        folder: Path,
        clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        super().__init__(options, folder, clock)
        (path_a, a), (path_b, b) = recordings
        self._names = (str(path_a), str(path_b))
        self._labels = (a.label, b.label)
        self._first = (a.frame(0), b.frame(0))
        self._lengths_s = (a.duration_s, b.duration_s)
        self._both_s = min(self._lengths_s)
        self._last = (a.frame(a.at(self._both_s)), b.frame(b.at(self._both_s)))
        self.pair = Pair(a, b, speed)
        self._stores = (Store(), Store())

    def get_default_screen(self) -> Screen[None]:
        """The only one."""
        self._main = CompareScreen(bound(self.bound))
        return self._main

    def on_ready(self) -> None:
        """Begin to play."""
        for side, store in zip(self.pair.sides, self._stores, strict=True):
            self.run_worker(self._feed(side, store))
        self.set_interval(1.0, self._show)

    async def _feed(self, side: ReplaySource, store: Store) -> None:
        async for frame in side.frames():
            store.apply(frame)
            self._show()
            await asyncio.sleep(0)

    def _show(self) -> None:
        plain = self.options.ascii
        glyphs = ASCII if plain else UNICODE
        view_a, view_b = (View(store, glyphs, WINDOWS_S[0], plain) for store in self._stores)
        frames: Sequence[Frame | None] = [store.frame for store in self._stores]
        if self.pair.position_s > self._both_s:  # the shorter one has nothing to compare with
            frames = self._last
        sides = None
        if all(frames):
            sides = (self._side(0, frames[0]), self._side(1, frames[1]))
        self._main.show((view_a, view_b), sides, self._status())

    def _side(self, place: int, frame: Frame | None) -> Side:
        assert frame is not None
        length_s = self._lengths_s[place]
        ended_s = length_s if self.pair.position_s > length_s else None
        return Side(self._names[place], self._labels[place], self._first[place], frame, ended_s)

    def _status(self) -> Line:
        status = self.pair.status
        line = [Piece("kvflow top", Ink.STRONG), Piece("  "), Piece(status.label, Ink.ACCENT)]
        return [*line, Piece("  "), Piece(status.why, Ink.ERROR)] if status.why else line

    def action_pause(self) -> None:
        """Hold both, or go on."""
        self.pair.paused = not self.pair.paused
        self._show()

    def action_pace(self, slower: int) -> None:
        """Play faster or slower, one degree."""
        self.pair.speed = beside(SPEEDS, self.pair.speed, -slower)
        self._show()

    def action_step(self, frames: int) -> None:
        """Go on or back by so many frames."""
        self.pair.step(frames)
        self._show()

    def action_jump(self, seconds: int) -> None:
        """Go on or back by so many seconds."""
        self.pair.seek(self.pair.position_s + seconds)
        self._show()


def run(recordings: Sequence[tuple[Path, Recording]], speed: float, options: ScreenOptions) -> None:
    """Compare two recordings until the person quits.

    Raises:
        KvflowError: a key that was chosen makes no sense, or a recording is damaged.
        SystemExit: something of kvflow's failed, which is printed, or SIGTERM came.
    """
    shown(CompareApp(recordings, speed, options=options, folder=export.folder()))
