"""An eviction order some of whose leaves are spared while they are few.

Source: design 4.2 (`untagged_share`). Two orders side by side, so that passing over what is spared
costs nothing, however much of it there is.
"""

from collections.abc import Callable, Iterator
from typing import Generic

from kvflow.order.heap import EvictionOrder, Leaf
from kvflow.policy.rank import Rank


class ReservedOrder(Generic[Leaf]):
    """The leaves of one tier by rank, but for those that are spared while others are left.

    Soft: when nothing else is left, what is spared goes too, by rank.

    Args:
        rank: as of `EvictionOrder`.
        is_reserved: whether a leaf belongs to the share that may be spared. A change of it is an
            event (`reranked`), as a change of rank is.
        size: of a leaf, in tokens.
        spare: how many tokens of the share may go before the rest of it is spared; as of now.
    """

    def __init__(
        self,
        rank: Callable[[Leaf], Rank],
        is_reserved: Callable[[Leaf], bool],
        size: Callable[[Leaf], int],
        spare: Callable[[], int],
    ) -> None:
        self._rank, self._is_reserved, self._size, self._spare = rank, is_reserved, size, spare
        self._open: EvictionOrder[Leaf] = EvictionOrder(rank)
        self._reserved: EvictionOrder[Leaf] = EvictionOrder(rank)

    def __len__(self) -> int:
        return len(self._open) + len(self._reserved)

    def __contains__(self, leaf: object) -> bool:
        return leaf in self._open or leaf in self._reserved

    def add(self, leaf: Leaf) -> None:
        """A node became a leaf of this tier. Nothing happens if it is one already."""
        if leaf not in self:
            self._home(leaf).add(leaf)

    def discard(self, leaf: Leaf) -> None:
        """A node is no leaf of this tier any more. Nothing happens if it is none."""
        self._open.discard(leaf)
        self._reserved.discard(leaf)

    def reranked(self, leaf: Leaf) -> None:
        """A node's rank changed, or whether it is reserved. Nothing happens if it is no leaf."""
        if leaf not in self:
            return
        home = self._home(leaf)
        if leaf in home:
            home.reranked(leaf)
        else:
            self.discard(leaf)
            home.add(leaf)

    def peek(self) -> Leaf | None:
        """The leaf that goes first; None if there is none."""
        first, spared = self._open.peek(), self._reserved.peek()
        if first is None or spared is None:
            return spared if first is None else first
        if self._spare() <= 0:
            return first
        return min(first, spared, key=self._rank)

    def pop(self) -> Leaf | None:
        """Take the leaf that goes first out of the order; None if there is none.

        One that could not be evicted after all has to be added again when the eviction ends.
        """
        leaf = self.peek()
        if leaf is not None:
            self.discard(leaf)
        return leaf

    def upcoming(self, uncovered: Callable[[Leaf], Leaf | None] | None = None) -> Iterator[Leaf]:
        """The leaves that evictions would take, in that order, without what is spared.

        None is taken. The first k cost O(k log k), whatever the number of leaves.

        Args:
            uncovered: as of `EvictionOrder.upcoming`.

        Raises:
            RuntimeError: the order changed since the last leaf was given.
        """
        spare = self._spare()
        spared: set[Leaf] = set()

        def bared_by(leaf: Leaf) -> Leaf | None:
            return None if leaf in spared or uncovered is None else uncovered(leaf)

        streams = [self._open.upcoming(bared_by), self._reserved.upcoming(bared_by)]
        heads = [next(stream, None) for stream in streams]
        while True:
            # A leaf of either kind may bare a node of the other, which joins its own stream.
            first, other = heads if spare > 0 else (heads[0], None)
            if first is None and other is None:
                return
            number = _smaller(first, other, self._rank)
            leaf = heads[number]
            assert leaf is not None
            if not self._is_reserved(leaf):
                yield leaf
            elif spare > 0:
                spare -= self._size(leaf)
                yield leaf
            else:
                spared.add(leaf)
            heads[number] = next(streams[number], None)

    def _home(self, leaf: Leaf) -> EvictionOrder[Leaf]:
        return self._reserved if self._is_reserved(leaf) else self._open


def _smaller(first: Leaf | None, other: Leaf | None, rank: Callable[[Leaf], Rank]) -> int:
    if first is None or other is None:
        return 0 if other is None else 1
    return 0 if rank(first) < rank(other) else 1
