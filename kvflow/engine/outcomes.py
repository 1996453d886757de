"""What becomes of KV that was loaded ahead: found, found on its way, or evicted unseen."""


class Outcomes:
    """What became of prefetched KV, in tokens; none of the counters ever falls.

    Attributes:
        issued: loaded ahead.
        used: of these, found by a call.
        late: of these, still on their way when the call was there.
        wasted: evicted before any call found them.
    """

    def __init__(self) -> None:
        self.issued = self.used = self.late = self.wasted = 0
        self.operations = 0
        self._fresh: dict[int, None] = {}  # nodes that no call has found yet

    def started(self, nodes: list[int], tokens: int) -> None:
        """A prefetch of these nodes is on its way."""
        self.operations += 1
        self.issued += tokens
        self._fresh.update(dict.fromkeys(nodes))

    def split(self, new_parent: int, child: int) -> None:
        """A node was cut in two."""
        if child in self._fresh:
            self._fresh[new_parent] = None

    def found(self, node: int, tokens: int, *, loading: bool) -> None:
        """A call has found this node."""
        if node in self._fresh:
            del self._fresh[node]
            self.used += tokens
            self.late += tokens if loading else 0

    def lost(self, node: int, tokens: int) -> None:
        """The node has left the device."""
        if node in self._fresh:
            del self._fresh[node]
            self.wasted += tokens

    def forget_nodes(self) -> None:
        """The tree was emptied."""
        self._fresh.clear()
