"""Which nodes have changed since the last frame, kept only while somebody watches."""

from collections.abc import Mapping
from itertools import islice

IDLE_TICKS = 90
"""Seconds after the last look at which watching ends by itself. More than between two looks of any
reader, since who comes later begins anew with an empty tree."""

MOST_GONE = 8192
"""Nodes that may leave between two looks; with more, the next frame is a key frame."""


class Watch:
    """The changes of one tree, for one reader that asks for them again and again.

    Memory: an entry for each node of the tree at most, and MOST_GONE.

    Attributes:
        on: whether somebody watches. While nobody does, nothing is kept.
        seq: of the last frame that its reader got.
    """

    def __init__(self) -> None:
        self.on = False
        self.seq = 0
        self._frames = 0
        self._dirty: dict[int, object] = {}  # by id, the longest unseen first
        self._gone: dict[int, None] = {}
        self._idle_ticks = 0

    def number(self) -> int:
        """The number of a new frame, watched or not."""
        self._frames += 1
        return self._frames

    def begin(self, nodes: Mapping[int, object], root: int) -> None:
        """Watch anew: all of these nodes are news, but for the root, which is never shown."""
        self.on = True
        self._dirty = dict(nodes)  # a copy is the fastest way to all the keys
        del self._dirty[root]
        self._gone = {}

    def end(self) -> None:
        """Nobody watches, or what was kept is of no use any more."""
        self.on = False
        self._dirty, self._gone = {}, {}

    def follows(self, since: int) -> bool:
        """Whether what is kept is what changed after the frame of that number."""
        return self.on and since == self.seq

    def changed(self, node: int) -> None:
        """A node is not what it was. Only while `on`."""
        self._dirty[node] = None

    def removed(self, node: int) -> None:
        """A node left the tree. Only while `on`."""
        self._dirty.pop(node, None)
        self._gone[node] = None
        if len(self._gone) > MOST_GONE:
            self.end()

    @property
    def has_news(self) -> bool:
        """Whether nodes that changed wait to be taken."""
        return bool(self._dirty)

    def take(self, most: int) -> list[int]:
        """The nodes that changed, at most so many."""
        self._idle_ticks = 0
        taken = list(islice(self._dirty, most))
        for node in taken:
            del self._dirty[node]
        return taken

    def take_gone(self) -> tuple[int, ...]:
        """The nodes that left the tree."""
        gone, self._gone = tuple(self._gone), {}
        return gone

    def tick(self) -> None:
        """A second has passed."""
        self._idle_ticks += 1
        if self.on and self._idle_ticks >= IDLE_TICKS:
            self.end()
