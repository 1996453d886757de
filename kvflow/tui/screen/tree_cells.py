"""One row of the tree in cells: state, place in the tree, agents, and the numbers of its rank."""

from typing import NamedTuple

from kvflow.frames import Node, State, Why
from kvflow.tui.glyphs import GHOST_LETTER, LETTERS, Glyphs
from kvflow.tui.owners import names
from kvflow.tui.rows import Column as Sorted
from kvflow.tui.rows import Row
from kvflow.tui.screen import figures
from kvflow.tui.screen.chart import Part, bar
from kvflow.tui.screen.columns import Column
from kvflow.tui.screen.ink import Ink, Line, Piece, shorten, width_of

_SIZE = 12
COLUMNS = (
    Column(Sorted.STATE, "st", 3, right=False, rank=1),
    Column(Sorted.ID, "node, prefix of", 26, right=False, stretch=True),
    Column(Sorted.STEPS, "steps", 6, rank=2),
    Column(Sorted.WHY, "why", 8, right=False, rank=4),
    Column(Sorted.TOKENS, "tokens", 7, rank=3),
    Column("size", "", _SIZE, right=False, rank=10),
    Column("bytes", "bytes", 6, rank=7),
    Column(Sorted.LOCKS, "lock", 5, rank=5),
    Column(Sorted.HITS, "hits", 5, rank=6),
    Column(Sorted.USED, "used", 5, rank=8),
    Column(Sorted.DEPTH, "depth", 6, rank=9),
)
"""Named as what they sort by. `used`: accesses of any node since this one's last."""

INKS = {
    State.DEVICE: Ink.DEVICE,
    State.MIRRORED: Ink.MIRRORED,
    State.HOST: Ink.HOST,
    State.LOADING: Ink.LOADING,
    State.OFFLOADING: Ink.OFFLOADING,
}
_LEAST_ROOM = 12  # for a node's mark, number and agents, whatever its level


class Look(NamedTuple):
    """What a row needs to know beside itself.

    Attributes:
        glyphs: the character set.
        plain: no characters beyond ASCII.
        bytes_per_token: of KV, over all layers.
        client: the only application there is; its name is left out before its agents' names.
        newest: the latest access of any node, by SGLang's logical clock.
        largest: tokens of the largest node.
    """

    glyphs: Glyphs
    plain: bool
    bytes_per_token: int
    client: str | None
    newest: float
    largest: int


def used_ago(node: Node, look: Look) -> str:
    """Accesses of any node since this node's last."""
    return figures.tokens(max(look.newest - node.last_access, 0))


def cells(row: Row, look: Look, width_of_id: int) -> dict[str, Line]:
    """The cells of a row; a ghost and a node that is only on the way to a match are pale."""
    node = row.node
    pale = Ink.GHOST if row.ghost else Ink.MUTED if not row.matched else None
    plain = pale or Ink.PLAIN
    return {
        Sorted.STATE: [_state(row, look.glyphs)],
        Sorted.ID: _place(row, look, width_of_id),
        Sorted.STEPS: [Piece(figures.steps(node.steps), pale or _urgency(node))],
        Sorted.WHY: [Piece(node.why, plain if node.why is Why.STEPS else pale or Ink.MUTED)],
        Sorted.TOKENS: [Piece(figures.tokens(node.tokens), plain)],
        "size": _size(node, look, pale),
        "bytes": [Piece(figures.size(node.tokens * look.bytes_per_token), pale or Ink.MUTED)],
        Sorted.LOCKS: _locks(node, look.glyphs, pale),
        Sorted.HITS: [Piece(figures.tokens(node.hits), plain)] if node.hits else [],
        Sorted.USED: [Piece(used_ago(node, look), pale or Ink.MUTED)],
        Sorted.DEPTH: [Piece(figures.tokens(node.depth), pale or Ink.MUTED)],
    }


def state_piece(state: State, glyphs: Glyphs) -> Piece:
    """A state as glyph and letter, in its ink."""
    return Piece(f"{glyphs.states[state]} {LETTERS[state]}", INKS[state])


def _state(row: Row, glyphs: Glyphs) -> Piece:
    if row.ghost:
        return Piece(f"{glyphs.ghost} {GHOST_LETTER}", Ink.GHOST)
    return state_piece(row.node.state, glyphs)


def _place(row: Row, look: Look, width: int) -> Line:
    """Where in the tree a node is, and whose prefix ends there."""
    marks = {True: look.glyphs.expanded, False: look.glyphs.collapsed, None: " "}
    most = max((width - _LEAST_ROOM) // 2, 0)
    guide, deep = ("| ", ">") if look.plain else ("│ ", "»")
    indent = guide * row.level
    if row.level > most:
        indent = guide * max(most - 2, 0) + f"{deep}{row.level} "
    ink = Ink.GHOST if row.ghost else Ink.PLAIN if row.matched else Ink.MUTED
    line = [Piece(indent, Ink.GHOST), Piece(f"{marks[row.expanded]} #{row.node.id} ", ink)]
    agents = _agents(row.node, look, width - width_of(line))
    return [*line, Piece(agents, Ink.STRONG if ink is Ink.PLAIN else ink)]


def _agents(node: Node, look: Look, width: int) -> str:
    ellipsis = ".." if look.plain else "…"
    agents = names(node, look.client)
    if len(agents) == 1:
        return figures.agent(agents[0], width, ellipsis)
    return shorten(" ".join(agents), width, ellipsis)


def _urgency(node: Node) -> Ink:
    if node.why is not Why.STEPS:
        return Ink.MUTED
    return Ink.ACCENT if node.steps <= 1 else Ink.PLAIN


def _size(node: Node, look: Look, pale: Ink | None) -> Line:
    part = Part(node.tokens, look.glyphs.bar[1], pale or INKS[node.state])
    return bar([part], look.largest, _SIZE)


def _locks(node: Node, glyphs: Glyphs, pale: Ink | None) -> Line:
    return [Piece(f"{glyphs.locked}{node.locks}", pale or Ink.STRONG)] if node.locks else []
