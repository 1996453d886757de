"""What `kvflow top` prints where it has no screen: a picture, JSON, or a line a tick."""

import sys
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec
from rich.text import Text

from kvflow.cli.console import out
from kvflow.telemetry.sampler import Sampler
from kvflow.tui import lines, stat
from kvflow.tui.document import document
from kvflow.tui.history import Point
from kvflow.tui.rows import View, flatten
from kvflow.tui.screen.ink import Ink, Line
from kvflow.tui.source import Status
from kvflow.tui.store import Store

_NARROWEST, _WIDEST = 60, 120  # columns of a picture
_STYLES: Final = {
    Ink.PLAIN: "",
    Ink.MUTED: "dim",
    Ink.STRONG: "bold",
    Ink.ACCENT: "bold",
    Ink.DEVICE: "cyan",
    Ink.MIRRORED: "cyan",
    Ink.HOST: "blue",
    Ink.LOADING: "yellow",
    Ink.OFFLOADING: "yellow",
    Ink.GHOST: "dim",
    Ink.WARNING: "yellow",
    Ink.ERROR: "bold red",
}


class Mode(StrEnum):
    """What is printed. The value is the option that asks for it."""

    ONCE = "--once"
    JSON = "--json"
    WATCH = "--watch"
    STAT = "--stat"
    NOTHING = "--no-tui"

    @property
    def is_single(self) -> bool:
        """Whether one moment is enough."""
        return self in (Mode.ONCE, Mode.JSON)


@dataclass(slots=True)
class Printer:
    """Prints moments of a server on stdout.

    Attributes:
        mode: how.
        view: which nodes, in which order.
        most: nodes that are printed; None for all.
        plain: no characters beyond ASCII.
        machine: reads this machine, as long as the server runs on it.
    """

    mode: Mode
    view: View
    most: int | None
    plain: bool
    machine: Sampler | None = None
    _ticks: int = field(default=0, init=False)
    _told: Point | None = field(default=None, init=False)

    def show(self, store: Store, status: Status, label: str) -> None:
        """Print a moment.

        Args:
            store: what is known of the server; must have a frame.
            status: of the source.
            label: of the source.

        Raises:
            BrokenPipeError: nobody reads any more.
        """
        match self.mode:
            case Mode.ONCE:
                self._picture(store, status, label)
            case Mode.JSON | Mode.WATCH:
                self._document(store, status, label)
            case Mode.STAT:
                self._tick(store)
            case Mode.NOTHING:
                return
        sys.stdout.flush()

    def _picture(self, store: Store, status: Status, label: str) -> None:
        rows = flatten(store, self.view)
        drawn = lines.picture(
            store,
            rows,
            self.view.sort,
            status,
            label,
            width=picture_width(),
            most=len(rows) if self.most is None else self.most,
            plain=self.plain,
        )
        for line in drawn:
            write(line)

    def _document(self, store: Store, status: Status, label: str) -> None:
        sample = self.machine.sample() if self.machine else None
        machine = sample if sample and sample.host else None
        told = document(store, flatten(store, self.view), status, label, machine, self.most)
        raw = msgspec.json.encode(told)
        text = (raw if self.mode is Mode.WATCH else msgspec.json.format(raw)).decode()
        sys.stdout.write(f"{text}\n")

    def _tick(self, store: Store) -> None:
        point = store.history.points[-1]
        if point is self._told:
            return  # frames in between are part of the next point
        if self._ticks % stat.TICKS_A_HEADER == 0:
            for line in stat.titles():
                write(line)
        write(stat.tick(point))
        self._ticks, self._told = self._ticks + 1, point


def picture_width() -> int:
    """Columns of a picture: those of the terminal, within reason."""
    return min(max(out().width, _NARROWEST), _WIDEST)


def write(line: Line) -> None:
    """Print a line in the terminal's own colours."""
    text = Text.assemble(*((piece.text, _STYLES[piece.ink]) for piece in line))
    text.rstrip()
    out().print(text)
