"""The help: what each mark means, every key, and the language of filters."""

from collections.abc import Sequence
from inspect import cleandoc
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from kvflow.frames import State
from kvflow.tui import filter as filters
from kvflow.tui.glyphs import GHOST_LETTER
from kvflow.tui.screen.ink import Ink, Line, Piece
from kvflow.tui.screen.keys import GROUPS, names
from kvflow.tui.screen.paint import Inked
from kvflow.tui.screen.picture import Picture
from kvflow.tui.screen.tree_cells import state_piece
from kvflow.tui.screen.view import View

_MEANINGS = {
    State.DEVICE: "on the device alone",
    State.MIRRORED: "on the device and on the host",
    State.HOST: "on the host alone",
    State.LOADING: "on its way from host to device",
    State.OFFLOADING: "on its way from device to host",
}
_FIGURES = {
    "steps": "agents that speak before one needs the node; 0 is now",
    "running": "calls in the running batch, none of those in prefill",
    "runs": "of an agent: only the live runs that need it soonest",
    "device hits": "tokens that were there, or were on their way there",
}
_KEYS_WIDTH, _FIGURES_WIDTH = 18, 11


def draw(view: View, bindings: Sequence[Binding]) -> list[Line]:
    """All help there is, as one sheet."""
    return [
        *_marks(view),
        [],
        _heading("Figures"),
        *_figures(),
        *_keys(bindings),
        [],
        _heading("Filter"),
        *_grammar(),
    ]


def _heading(text: str) -> Line:
    return [Piece(text, Ink.ACCENT)]


def _marks(view: View) -> list[Line]:
    lines: list[Line] = [_heading("Nodes")]
    for state, meaning in _MEANINGS.items():
        lines.append([Piece("  "), state_piece(state, view.glyphs), Piece(f"  {meaning}")])
    ghost = Piece(f"{view.glyphs.ghost} {GHOST_LETTER}", Ink.GHOST)
    lines.append([Piece("  "), ghost, Piece("  has just left the tree")])
    locked = Piece(f"{view.glyphs.locked}2 ", Ink.STRONG)
    meaning = "in use by two calls or copies: cannot be evicted now"
    lines.append([Piece("  "), locked, Piece(f"  {meaning}")])
    return lines


def _figures() -> list[Line]:
    """What is in a figure, where its name does not say all of it."""
    return [
        [Piece(f"  {name:<{_FIGURES_WIDTH}}  ", Ink.STRONG), Piece(meaning)]
        for name, meaning in _FIGURES.items()
    ]


def _keys(bindings: Sequence[Binding]) -> list[Line]:
    lines: list[Line] = []
    for group, title in GROUPS.items():
        lines += [[], _heading(title)]
        for binding in bindings:
            if (binding.id or "").partition(".")[0] == group:
                keys = " ".join(names(binding))
                lines.append(
                    [Piece(f"  {keys:<{_KEYS_WIDTH}}", Ink.STRONG), Piece(binding.description)]
                )
    return lines


def _grammar() -> list[Line]:
    """What the filter's own module says of its language."""
    text = cleandoc(filters.__doc__ or "").partition("Pure.")[0]
    return [[Piece(f"  {line}")] for line in text.strip().splitlines()]


class Help(Inked, ModalScreen[None]):
    """Shows help until it is closed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,h,f1,q", "app.pop_screen", "close", id="help.close"),
    ]

    def __init__(self, view: View, bindings: Sequence[Binding]) -> None:
        super().__init__()
        self._view = view
        self._listed = bindings

    def compose(self) -> ComposeResult:
        """One sheet over what is there."""
        sheet = Picture(
            lambda view, _width, _height: draw(view, self._listed), id="sheet", scrolls=True
        )
        sheet.border_title = "kvflow top"
        sheet.border_subtitle = "esc closes"
        yield sheet

    def on_mount(self) -> None:
        """Draw it."""
        self.query_one(Picture).show(self._view)
