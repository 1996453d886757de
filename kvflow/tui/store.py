"""What `kvflow top` knows of a server: the latest frame, its tree, what changed, what was.

Pure: knows no Textual, no network, no clock. Screens and script modes read the same store.
Memory is bounded by the tree's size and the history's 15 minutes, whatever the number of frames.
"""

from collections import deque
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

from kvflow.frames import Frame, Node, State
from kvflow.tui.history import History
from kvflow.tui.tree import Change, Tree

FRESH_FRAMES = 2  # for so many frames a change is shown, and a node that left
RESTARTED_FRAMES = 10  # for so many frames a restart of the server is told
MOST_PARTS = 10  # that count as one frame, where a server always has more to tell
_TIMELINE = 12  # states that are remembered of a node
_MOST_GHOSTS = 1000


@dataclass(frozen=True, slots=True)
class Ghost:
    """A node that has just left the tree."""

    node: Node  # as it was
    frames: int  # since it left, parts of one being one; 0: the latest was the first without it


class Past(NamedTuple):
    """A state in which a node was."""

    state: State
    until_s: float  # Unix time


class Subtree(NamedTuple):
    """Sums over a node and all nodes below it that are known."""

    nodes: int
    tokens: int
    device_tokens: int


class Store:
    """A server, as far as its frames have told.

    Attributes:
        frame: the latest one; its `nodes` may be a part only, `tree` has all.
        tree: the radix tree.
        history: rates and shares over time.
        ghosts: by id, the nodes that left within the last two frames.
        version: grows by 1 with each frame.
        latest: what the latest frame changed in the tree.
    """

    def __init__(self) -> None:
        self.frame: Frame | None = None
        self.tree = Tree()
        self.history = History()
        self.ghosts: dict[int, Ghost] = {}
        self.version = 0
        self.latest = Change({}, [])
        self._round = 0  # grows by 1 with each frame that is not the rest of the one before
        self._parts = 0  # of this round, so far
        self._is_settled = False  # the tree was complete since it began anew
        self._changed_at: dict[int, int] = {}
        self._changed: deque[list[int]] = deque(maxlen=FRESH_FRAMES)
        self._past: dict[int, tuple[Past, ...]] = {}
        self._subtrees: dict[int, Subtree] = {}
        self._subtrees_of = -1
        self._restarted_at: int | None = None

    def apply(self, frame: Frame) -> None:
        """Take in a frame, as a Source gives them: in order, and a delta after what it is of."""
        if self.frame is not None and self.frame.boot != frame.boot:
            self._restart()
        went_back = self.frame is not None and self._went_back(self.frame, frame)
        was_settled, is_rest = self._is_settled, self._is_rest(frame)
        self.frame, self.version = frame, self.version + 1
        change = self.latest = self.tree.apply(frame)
        goes_on = frame.delta_since is not None
        self._is_settled = self.tree.complete or (was_settled and goes_on)
        self.history.add(frame)
        if is_rest:
            self._parts += 1
        else:
            self._begin_round()
        fresh = []
        for node_id, before in change.before.items():
            node = self.tree.nodes[node_id]
            if before is None:
                self.ghosts.pop(node_id, None)
                if was_settled:
                    fresh.append(node_id)
            elif _looks_different(before, node):
                fresh.append(node_id)
                if before.state is not node.state and not went_back:
                    self._note(before, frame.time_s)
        self._changed[-1] += fresh
        self._changed_at.update(dict.fromkeys(fresh, self._round))
        for node in change.gone:
            if node.id in self.tree.nodes:
                continue  # the same frame brought it back
            self._past.pop(node.id, None)
            self._changed_at.pop(node.id, None)
            if self._is_settled and len(self.ghosts) < _MOST_GHOSTS:
                self.ghosts[node.id] = Ghost(node, 0)

    def frozen(self) -> "Store":
        """What is known now, to be looked at while this one goes on; the history is shared.

        O(nodes).
        """
        kept = copy(self)
        kept.tree, kept.ghosts = self.tree.copy(), dict(self.ghosts)
        kept._changed_at = dict(self._changed_at)
        kept._past = dict(self._past)
        return kept

    @property
    def restarted(self) -> bool:
        """Whether the server was started anew within the last frames."""
        at = self._restarted_at
        return at is not None and self._round - at < RESTARTED_FRAMES

    def freshness(self, node_id: int) -> int | None:
        """Frames since a node looked different; None if that is longer ago than two.

        All parts of a large change are one frame.
        """
        at = self._changed_at.get(node_id)
        return None if at is None else self._round - at

    def timeline(self, node_id: int) -> tuple[Past, ...]:
        """The states in which a node was before the one it is in, oldest first."""
        return self._past.get(node_id, ())

    def subtree(self, node_id: int) -> Subtree:
        """Sums over a node and what is below it. O(nodes below) once a frame, then O(1).

        Raises:
            KeyError: no such node.
        """
        if self._subtrees_of != self.version:
            self._subtrees, self._subtrees_of = {}, self.version
        if node_id not in self._subtrees:
            found = [self.tree.nodes[node_id], *self.tree.below(node_id)]
            self._subtrees[node_id] = Subtree(
                len(found),
                sum(node.tokens for node in found),
                sum(node.tokens for node in found if on_device(node)),
            )
        return self._subtrees[node_id]

    def _is_rest(self, frame: Frame) -> bool:
        """Whether a frame is the rest of what the one before had to tell."""
        return (
            frame.delta_since is not None
            and not self.tree.complete
            and 0 < self._parts < MOST_PARTS
        )

    def _restart(self) -> None:
        self.tree, self._is_settled, self._parts = Tree(), False, 0
        self.ghosts.clear()
        self._changed_at.clear()
        self._changed.clear()
        self._past.clear()
        self.history.restart()
        self._restarted_at = self._round + 1  # the frame that is being taken in

    def _begin_round(self) -> None:
        """What was marked is a frame older."""
        self._round, self._parts = self._round + 1, 1
        if len(self._changed) == FRESH_FRAMES:
            for node_id in self._changed[0]:
                if self.freshness(node_id) == FRESH_FRAMES:
                    del self._changed_at[node_id]
        self._changed.append([])
        self.ghosts = {
            node_id: Ghost(ghost.node, ghost.frames + 1)
            for node_id, ghost in self.ghosts.items()
            if ghost.frames + 1 < FRESH_FRAMES
        }

    def _went_back(self, before: Frame, frame: Frame) -> bool:
        """Whether a replay went back. Where a server's clock was set back, the past goes along."""
        if frame.time_s >= before.time_s:
            return False
        if frame.boot != before.boot or frame.seq <= before.seq:
            self._forget_after(frame.time_s)
            return True
        self._set_back(before.time_s + max(frame.uptime_s - before.uptime_s, 0.0) - frame.time_s)
        return False

    def _set_back(self, seconds: float) -> None:
        self.history.set_back(seconds)
        self._past = {
            node_id: tuple(one._replace(until_s=one.until_s - seconds) for one in past)
            for node_id, past in self._past.items()
        }

    def _forget_after(self, time_s: float) -> None:
        """A replay went back: what lies ahead has not happened."""
        self._restarted_at = None
        self._past = {
            node_id: tuple(one for one in past if one.until_s <= time_s)
            for node_id, past in self._past.items()
        }

    def _note(self, before: Node, time_s: float) -> None:
        past = self._past.get(before.id, ())[1 - _TIMELINE :]
        self._past[before.id] = (*past, Past(before.state, time_s))


def on_device(node: Node) -> bool:
    """Whether the node's KV is on the device, all of it."""
    return node.state in (State.DEVICE, State.MIRRORED, State.OFFLOADING)


def _looks_different(one: Node, other: Node) -> bool:
    return (
        one.state is not other.state
        or one.steps != other.steps
        or one.tokens != other.tokens
        or one.locks != other.locks
        or one.hits != other.hits
        or one.why is not other.why
        or one.agents != other.agents
    )
