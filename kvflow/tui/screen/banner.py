"""What stands on top: which server, whether it can be believed, and what is chosen."""

from collections.abc import Iterable
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Digits, Label

from kvflow.frames import State
from kvflow.tui.glyphs import LETTERS
from kvflow.tui.history import hit_shares
from kvflow.tui.screen import figures
from kvflow.tui.screen.chart import bar
from kvflow.tui.screen.ink import Ink, Line, Piece, apart, shorten, width_of
from kvflow.tui.screen.mode import limited
from kvflow.tui.screen.panels.pools import parts
from kvflow.tui.screen.view import View
from kvflow.tui.source import Link, Status
from kvflow.tui.words import NO_FRAME

ROOMY = 4
"""Lines of the banner where there is room for big figures beside it; they are as high."""
_BAR = 16
_GAP = Piece("  ")


class Situation(NamedTuple):
    """What is chosen, and how the source stands.

    Attributes:
        status: of the source.
        label: of the source.
        interval_s: between two frames.
        paused: tables stand still while charts go on.
        recording: name of the file that frames are written to, or nothing.
        filter: as it was typed.
        order: what rows are sorted by.
        follow: the selection keeps its line.
        shown: rows of the tree.
    """

    status: Status
    label: str
    interval_s: float
    paused: bool = False
    recording: str = ""
    filter: str = ""
    order: str = ""
    follow: bool = False
    shown: int = 0


def draw(view: View, now: Situation, width: int, height: int) -> list[Line]:
    """The banner; with less height than ROOMY, hits and pools stand in its last line."""
    source = _source(view, now, width)
    first = apart(source, _server(view, now, width - width_of(source) - 1), width)
    if height < ROOMY:
        lines = [[*_load(view), _GAP, *_choices(now)], _summary(view)]
    else:
        lines = [_load(view), _choices(now), _tree(view, now)]
    trouble = _trouble(view, now, width)
    return [first, *trouble, *lines[len(trouble) :]]


def _source(view: View, now: Situation, width: int) -> Line:
    label = shorten(now.label, max(width - 48, 12), view.ellipsis)
    return [Piece("kvflow top", Ink.STRONG), _GAP, _chip(now), _GAP, Piece(label)]


def _chip(now: Situation) -> Piece:
    if now.status.link is Link.CONNECTING:
        return Piece(now.status.label, Ink.MUTED)
    if not now.status.is_good:
        return Piece(now.status.label, Ink.ERROR)
    if now.paused:
        return Piece("PAUSED", Ink.WARNING)
    return Piece(now.status.label, Ink.DEVICE if now.status.link is Link.LIVE else Ink.ACCENT)


def _server(view: View, now: Situation, room: int) -> Line:
    """What is known of the server; without the room, model, age, pace and limits go in turn."""
    frame = view.store.frame
    model: Line = []
    mode: Line = []
    age: Line = []
    pace: Line = []
    limits: list[Line] = []
    if frame is not None:
        mode = [Piece("mode ", Ink.MUTED), Piece(frame.mode, Ink.STRONG)]
        limits = [[*mode, Piece(f" ({words})", Ink.WARNING)] for words in limited(frame)]
        if frame.model:
            model = [Piece(frame.model, Ink.STRONG)]
        if frame.uptime_s:
            age = [Piece("up ", Ink.MUTED), Piece(figures.seconds(frame.uptime_s))]
    if now.status.link is not Link.REPLAY:
        pace = [Piece(f"every {now.interval_s:g} s", Ink.MUTED)]
    fullest = limits[0] if limits else mode
    told = [[model, fullest, age, pace], [fullest, age, pace]]
    for shorter in limits:
        told += [[shorter, pace], [shorter]]
    lines = (_spaced(parts) for parts in told)
    return next((line for line in lines if width_of(line) <= room), _spaced([mode, pace]))


def _spaced(parts: Iterable[Line]) -> Line:
    """Those that say something, with gaps between them."""
    line: Line = []
    for part in filter(None, parts):
        line += [_GAP, *part] if line else part
    return line


def _trouble(view: View, now: Situation, width: int) -> list[Line]:
    """What is wrong, and what to do, in as many lines as that takes; none if all is well."""
    why, hint = now.status.why, f"hint: {now.status.hint}" if now.status.hint else ""
    if not why and view.store.frame is not None and view.store.frame.degraded:
        why = "kvflow has failed in this server and does nothing any more"
        hint = "SGLang goes on as in mode off (see its log)"
    told = [Piece(why, Ink.ERROR), _GAP, Piece(hint, Ink.MUTED)]
    if width_of(told) <= width:
        return [told] if why else []
    short = [shorten(text, width, view.ellipsis) for text in (why, hint)]
    return [[Piece(short[0], Ink.ERROR)], [Piece(short[1], Ink.MUTED)]]


def _load(view: View) -> Line:
    frame = view.store.frame
    if frame is None:
        return [Piece(NO_FRAME, Ink.MUTED)]
    named = [("running", frame.running), ("waiting", frame.waiting), ("runs", frame.runs)]
    line: Line = []
    for name, number in named:
        line += [Piece(f"{name} ", Ink.MUTED), Piece(f"{number:<4}", Ink.STRONG)]
    if view.store.restarted:
        line += [_GAP, Piece("server restarted", Ink.WARNING)]
    return line


def _choices(now: Situation) -> Line:
    line = [Piece("sort ", Ink.MUTED), Piece(now.order)]
    if now.filter:
        line += [_GAP, Piece("filter ", Ink.MUTED), Piece(now.filter, Ink.ACCENT)]
    if now.follow:
        line += [_GAP, Piece("follow", Ink.ACCENT)]
    if now.recording:
        line += [_GAP, Piece("REC ", Ink.ERROR), Piece(now.recording, Ink.MUTED)]
    return line


def _tree(view: View, now: Situation) -> Line:
    frame, known = view.store.frame, len(view.store.tree.nodes)
    if frame is None:
        return []
    line = [Piece("nodes ", Ink.MUTED), Piece(f"{known:,}", Ink.STRONG)]
    if not view.store.tree.complete:
        line.append(Piece(f" of {max(frame.tree_nodes, known):,} so far", Ink.WARNING))
    line += [_GAP, Piece("rows ", Ink.MUTED), Piece(f"{now.shown:,}")]
    seen = frame.counters
    calls = f"{seen.tagged_calls:,} tagged, {seen.untagged_calls:,} untagged"
    return [*line, _GAP, Piece("calls ", Ink.MUTED), Piece(calls)]


def _summary(view: View) -> Line:
    frame = view.store.frame
    if frame is None:
        return []
    line: Line = []
    for name, pool, ink in (("device", frame.device, Ink.DEVICE), ("host", frame.host, Ink.HOST)):
        if pool is not None:
            line += [
                Piece(f"{name} ", ink),
                *bar(parts(view, pool, ink), pool.capacity, _BAR),
                _GAP,
            ]
    device, host, _ = hit_shares(frame.counters) or (None, None, None)
    line.append(Piece("hits ", Ink.MUTED))
    line.append(Piece(f"{LETTERS[State.DEVICE]} {figures.share(device)} ", Ink.DEVICE))
    line.append(Piece(f"{LETTERS[State.HOST]} {figures.share(host)}", Ink.HOST))
    return line


class HitFigures(Horizontal):
    """Shares of all prompt tokens since the server's start, in figures as high as the banner."""

    _KINDS = ("device", "host", "computed")

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._digits = [Digits("-") for _ in self._KINDS]

    def compose(self) -> ComposeResult:
        """One figure for each place where tokens were found."""
        for kind, digits in zip(self._KINDS, self._digits, strict=True):
            label = Label(kind if kind == "computed" else f"{kind} hits")
            yield Vertical(digits, label, classes=f"figure {kind}")

    def show(self, view: View) -> None:
        """Show the shares of this view."""
        frame = view.store.frame
        shares = (hit_shares(frame.counters) if frame else None) or (None, None, None)
        for digits, share in zip(self._digits, shares, strict=True):
            if digits.value != (figure := figures.share(share)):
                digits.update(figure)
