"""An eviction order some of whose leaves are spared while they are few.

What is spared is `untagged_share` of the pool. Two orders side by side, so that passing over it
costs nothing, however much there is.
"""

import heapq
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
        first, other = _Line(self._open, self._rank), _Line(self._reserved, self._rank)
        while True:
            line = _ahead(first, other) if spare > 0 else first
            leaf = line.head
            if leaf is None:
                return
            if line is other:
                spare -= self._size(leaf)
            yield leaf
            line.take()
            bared = None if uncovered is None else uncovered(leaf)
            if bared is not None:
                (other if self._is_reserved(bared) else first).join(bared)

    def _home(self, leaf: Leaf) -> EvictionOrder[Leaf]:
        return self._reserved if self._is_reserved(leaf) else self._open


class _Line(Generic[Leaf]):
    """The leaves of one order as they will go, and those that are bared on the way."""

    def __init__(self, order: EvictionOrder[Leaf], rank: Callable[[Leaf], Rank]) -> None:
        self._rank = rank
        self._leaves = order.upcoming()
        self._next = next(self._leaves, None)
        self._bared: list[tuple[Rank, Leaf]] = []  # a heap; no two ranks are the same

    @property
    def head(self) -> Leaf | None:
        """Who goes next; None if nobody is left."""
        if not self._bared:
            return self._next
        rank, leaf = self._bared[0]
        return leaf if self._next is None or rank < self._rank(self._next) else self._next

    def take(self) -> None:
        """The head is gone."""
        if self._bared and self.head is self._bared[0][1]:
            heapq.heappop(self._bared)
        else:
            self._next = next(self._leaves, None)

    def join(self, leaf: Leaf) -> None:
        """A node became a leaf: it stands where it ranks."""
        heapq.heappush(self._bared, (self._rank(leaf), leaf))

    def goes_before(self, other: "_Line[Leaf]") -> bool:
        """Whether its head, if any, ranks before the other's."""
        mine, theirs = self.head, other.head
        if mine is None or theirs is None:
            return theirs is None
        return self._rank(mine) < self._rank(theirs)


def _ahead(first: _Line[Leaf], other: _Line[Leaf]) -> _Line[Leaf]:
    return first if first.goes_before(other) else other
