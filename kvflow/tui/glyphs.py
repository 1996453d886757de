"""How states look: a glyph, a letter, never colour alone."""

from typing import NamedTuple

from kvflow.frames import State


class Glyphs(NamedTuple):
    """The marks of one character set."""

    states: dict[State, str]
    ghost: str  # a node that has just left
    locked: str
    expanded: str
    collapsed: str
    bar: tuple[str, str, str, str]  # full, then from nearly full to empty
    ascending: str
    descending: str


LETTERS = {
    State.DEVICE: "D",
    State.MIRRORED: "M",
    State.HOST: "H",
    State.LOADING: "L",
    State.OFFLOADING: "O",
}
GHOST_LETTER = "x"

UNICODE = Glyphs(
    states={
        State.DEVICE: "●",
        State.MIRRORED: "◉",
        State.HOST: "○",
        State.LOADING: "▲",
        State.OFFLOADING: "▼",
    },
    ghost="·",
    locked="*",
    expanded="▾",
    collapsed="▸",
    bar=("█", "▒", "░", " "),
    ascending="▲",
    descending="▼",
)
ASCII = Glyphs(
    states={
        State.DEVICE: "#",
        State.MIRRORED: "@",
        State.HOST: ".",
        State.LOADING: "^",
        State.OFFLOADING: "v",
    },
    ghost="x",
    locked="*",
    expanded="-",
    collapsed="+",
    bar=("#", "=", ".", " "),
    ascending="^",
    descending="v",
)
