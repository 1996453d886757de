"""Pictures of `kvflow top` as text, from frames, without a terminal."""

from collections.abc import Iterable

from support.top_scene import life

from kvflow.frames import Frame
from kvflow.tui.glyphs import ASCII, UNICODE
from kvflow.tui.screen.ink import Ink, Line
from kvflow.tui.screen.view import View
from kvflow.tui.store import Store


def view_of(frames: Iterable[Frame] | None = None, *, plain: bool = False, **other) -> View:
    """What is seen after these frames (by default a minute of the scene)."""
    store = Store()
    for frame in life(60) if frames is None else frames:
        store.apply(frame)
    return View(store, ASCII if plain else UNICODE, 60, plain, **other)


def text_of(lines: Iterable[Line]) -> str:
    """Lines of pieces as one text."""
    return "\n".join("".join(piece.text for piece in line).rstrip() for line in lines)


def inks_of(lines: Iterable[Line], text: str) -> set[Ink]:
    """The inks of all pieces with this text in them."""
    return {piece.ink for line in lines for piece in line if text in piece.text}
