"""One node in full: why it is kept or went, the way to it, and the states it was in."""

from textwrap import wrap
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from kvflow.frames import Node
from kvflow.tui.explain import Explanation, why_evicted, why_kept
from kvflow.tui.owners import names
from kvflow.tui.screen import figures
from kvflow.tui.screen.ink import Ink, Line, Piece
from kvflow.tui.screen.paint import Inked
from kvflow.tui.screen.picture import Picture
from kvflow.tui.screen.tree_cells import state_piece
from kvflow.tui.screen.view import View
from kvflow.tui.words import plural

_MOST_PATH = 12  # nodes of the path, the nearest to the node


def draw(view: View, node_id: int, width: int) -> list[Line]:
    """All that is known of a node, also of one that has left."""
    lines = _node(view, node_id, width)
    evictions = view.store.frame.evictions if view.store.frame else ()
    for record in reversed([one for one in evictions if one.node == node_id]):
        lines += [[]] if lines else []
        lines += [_heading("evicted"), *_explanation(why_evicted(view.store, record), width)]
    return lines or [[Piece("it has left the tree, and nothing more is known of it", Ink.MUTED)]]


def _node(view: View, node_id: int, width: int) -> list[Line]:
    node = view.store.tree.nodes.get(node_id)
    explained = why_kept(view.store, node_id)
    if node is None or explained is None:
        return []
    return [
        *_explanation(explained, width),
        [],
        *_facts(view, node),
        [],
        _heading("states, the latest first"),
        *_timeline(view, node),
        [],
        _heading("path from the root"),
        *_path(view, node_id),
    ]


def _heading(text: str) -> Line:
    return [Piece(text, Ink.ACCENT)]


def _explanation(explained: Explanation, width: int) -> list[Line]:
    lines: list[Line] = [[Piece(text, Ink.STRONG)] for text in wrap(explained.verdict, width)]
    for reason in explained.reasons:
        lines += [[Piece(text)] for text in wrap(reason, width)]
    return lines


def _facts(view: View, node: Node) -> list[Line]:
    frame = view.store.frame
    size = figures.size(node.tokens * frame.bytes_per_token) if frame else "-"
    below = view.store.subtree(node.id)
    facts = [
        ("tokens", f"{node.tokens:,} ({size}), after {node.depth:,} before it"),
        ("steps", f"{figures.steps(node.steps)} ({node.why})"),
        ("users", f"{plural(node.locks, 'lock')}, {plural(node.hits, 'hit')}"),
        ("prefix of", ", ".join(names(node)) or "no agent ends here"),
        (
            "with below",
            f"{plural(below.nodes, 'node')}, {plural(below.tokens, 'token')}, "
            f"{below.device_tokens:,} on the device",
        ),
    ]
    return [[Piece(f"{name:<11}", Ink.MUTED), Piece(text)] for name, text in facts]


def _path(view: View, node_id: int) -> list[Line]:
    path = view.store.tree.path(node_id)
    lines: list[Line] = []
    if len(path) > _MOST_PATH:
        lines.append([Piece(f"{len(path) - _MOST_PATH} more above", Ink.MUTED)])
    for node in path[-_MOST_PATH:]:
        ink = Ink.STRONG if node.id == node_id else Ink.PLAIN
        lines.append(
            [
                state_piece(node.state, view.glyphs),
                Piece(f"  #{node.id:<8}", ink),
                Piece(f"{figures.tokens(node.tokens):>5} tokens  ", Ink.MUTED),
                Piece(f"steps {figures.steps(node.steps):<3}", Ink.MUTED),
                Piece(" ".join(names(node)), ink),
            ]
        )
    return lines


def _timeline(view: View, node: Node) -> list[Line]:
    """The states, the latest first, each with how long it lasted."""
    frame, past = view.store.frame, view.store.timeline(node.id)
    now = frame.time_s if frame else 0.0
    states = [node.state, *(one.state for one in reversed(past))]
    ends = [now, *(one.until_s for one in reversed(past))]
    lines: list[Line] = []
    for place, (state, until) in enumerate(zip(states, ends, strict=True)):
        since = ends[place + 1] if place < len(past) else None
        begun = f"for {figures.seconds(until - since)}" if since is not None else ""
        times = [begun or "since it was first seen"]
        times += [f"until {figures.seconds(now - until)} ago"] if place else []
        word = Piece(f"  {state:<11}", Ink.MUTED if place else Ink.PLAIN)
        lines.append([state_piece(state, view.glyphs), word, Piece(", ".join(times), Ink.MUTED)])
    return lines


class Details(Inked, ModalScreen[None]):
    """Shows a node until it is closed, and keeps up with it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,d,q", "app.pop_screen", "close", id="details.close"),
        Binding("y", "copy", "copy id", id="details.copy"),
    ]

    def __init__(self, view: View, node_id: int) -> None:
        super().__init__()
        self._node_id = node_id
        self._begin, self._boot = view, view.boot
        self._known: list[Line] = []  # of the node while it was in the tree

    def compose(self) -> ComposeResult:
        """One sheet over what is there."""
        sheet = Picture(self._draw, id="sheet", scrolls=True)
        sheet.border_title = f"node #{self._node_id}"
        sheet.border_subtitle = "esc closes"
        yield sheet

    def on_mount(self) -> None:
        """Show what was known when it was asked for."""
        self.show(self._begin)

    def _draw(self, view: View, width: int, height: int) -> list[Line]:
        del height
        lines = draw(view, self._node_id, width)
        if self._node_id in view.store.tree.nodes:
            self._known = lines
        elif self._known:
            lines = [*lines, [], _heading("as it was last seen"), *self._known]
        return lines

    def show(self, view: View) -> None:
        """Show what is known now; close when the node's number has become another's."""
        if view.boot == self._boot:
            self.query_one(Picture).show(view)
            return
        self.app.notify(f"node #{self._node_id} was of a server that has been started anew")
        self.dismiss()

    def action_copy(self) -> None:
        """Copy the id of the node."""
        self.app.copy_to_clipboard(str(self._node_id))
        self.notify(f"copied {self._node_id}")
