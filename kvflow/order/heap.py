"""The eviction order of one tier: an index of its leaves that events keep, never rebuilt.

Source: paper section 1.2 (Alg. 2), invariants 18, 22, 39 and 40.

A binary heap that knows the place of each leaf. Ranks go both ways (an agent that is done comes
back late, a branch brings another one near), so a heap that forgets lazily would need version
stamps, clean-ups, and now and then a long run of dead entries at its top in the middle of an
eviction. Here every event costs O(log leaves), and what is kept is one entry a leaf.

One thing is not an event: SGLang touches a node by writing a later time into it. The rank that
is stored is then too small, never too great, so the leaf comes up too early at worst; what comes
up is ranked again and sinks to where it belongs.
"""

import heapq
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from kvflow.policy.rank import Rank

Leaf = TypeVar("Leaf", bound=Hashable)


class EvictionOrder(Generic[Leaf]):
    """The leaves of one tier, by rank. What comes first is always what a full sort puts first.

    Args:
        rank: rank of a leaf as of now; no two leaves may have the same. Between two events of a
            leaf it may grow by itself (a touch); any other change needs `reranked`.
    """

    def __init__(self, rank: Callable[[Leaf], Rank]) -> None:
        self._rank = rank
        # One heap in two lists: comparing bare ranks is faster than (rank, leaf) pairs.
        # Invariant: a parent's stored rank <= its children's; a stored rank <= the true one.
        self._ranks: list[Rank] = []
        self._leaves: list[Leaf] = []
        self._place: dict[Leaf, int] = {}
        self._changes = 0

    def __len__(self) -> int:
        return len(self._leaves)

    def __contains__(self, leaf: object) -> bool:
        return leaf in self._place

    def add(self, leaf: Leaf) -> None:
        """A node became a leaf of this tier. Nothing happens if it is one already."""
        if leaf in self._place:
            return
        rank = self._rank(leaf)
        self._changes += 1
        self._ranks.append(rank)
        self._leaves.append(leaf)
        self._rise(len(self._leaves) - 1, rank, leaf)

    def discard(self, leaf: Leaf) -> None:
        """A node is no leaf of this tier any more. Nothing happens if it is none."""
        place = self._place.pop(leaf, None)
        if place is None:
            return
        self._changes += 1
        rank, last = self._ranks.pop(), self._leaves.pop()
        if place < len(self._leaves):
            self._put(place, rank, last)

    def reranked(self, leaf: Leaf) -> None:
        """The rank of a node changed, either way. Nothing happens if it is no leaf here."""
        place = self._place.get(leaf)
        if place is not None:
            self._changes += 1
            self._put(place, self._rank(leaf), leaf)

    def peek(self) -> Leaf | None:
        """The leaf that goes first; None if there is none."""
        while self._leaves:
            leaf = self._leaves[0]
            rank = self._rank(leaf)
            if rank == self._ranks[0]:
                return leaf
            self._changes += 1
            self._put(0, rank, leaf)
        return None

    def pop(self) -> Leaf | None:
        """Take the leaf that goes first out of the order; None if there is none.

        One that could not be evicted after all has to be added again when the eviction ends.
        """
        leaf = self.peek()
        if leaf is not None:
            self.discard(leaf)
        return leaf

    def upcoming(self, uncovered: Callable[[Leaf], Leaf | None] | None = None) -> Iterator[Leaf]:
        """The leaves in the order in which evictions would take them; none is taken.

        The first k cost O(k log k), whatever the number of leaves.

        Args:
            uncovered: asked once for each leaf that was given: the node that becomes a leaf when
                this and all before it are gone, or None. It joins in at its rank.

        Raises:
            RuntimeError: the order changed since the last leaf was given.
        """
        # Best first through the heap. An entry that proves too small waits at its true rank; its
        # children enter at once, for theirs may lie in between. Place -1: needs no more looking.
        frontier: list[tuple[Rank, int, Leaf]] = []
        self._reach(0, frontier)
        changes = self._changes
        while frontier:
            rank, place, leaf = heapq.heappop(frontier)
            if place >= 0:
                self._reach(2 * place + 1, frontier)
                self._reach(2 * place + 2, frontier)
                true_rank = self._rank(leaf)
                if true_rank != rank:
                    heapq.heappush(frontier, (true_rank, -1, leaf))
                    continue
            yield leaf
            if changes != self._changes:
                raise RuntimeError("the eviction order changed while somebody looked ahead in it")
            bared = None if uncovered is None else uncovered(leaf)
            if bared is not None:
                heapq.heappush(frontier, (self._rank(bared), -1, bared))

    def _reach(self, place: int, frontier: list[tuple[Rank, int, Leaf]]) -> None:
        if place < len(self._leaves):
            heapq.heappush(frontier, (self._ranks[place], place, self._leaves[place]))

    def _put(self, place: int, rank: Rank, leaf: Leaf) -> None:
        """Fill the hole at `place`, then restore the heap around it."""
        # What comes into a hole mostly belongs far down (the youngest, or the last): let the
        # smaller children rise to the bottom without asking, then rise from there.
        ranks, leaves, places = self._ranks, self._leaves, self._place
        size = len(leaves)
        below = 2 * place + 1
        while below < size:
            if below + 1 < size and ranks[below + 1] < ranks[below]:
                below += 1
            ranks[place] = ranks[below]
            leaves[place] = moved = leaves[below]
            places[moved] = place
            place = below
            below = 2 * place + 1
        self._rise(place, rank, leaf)

    def _rise(self, place: int, rank: Rank, leaf: Leaf) -> None:
        ranks, leaves, places = self._ranks, self._leaves, self._place
        while place:
            above = (place - 1) >> 1
            if ranks[above] < rank:
                break
            ranks[place] = ranks[above]
            leaves[place] = moved = leaves[above]
            places[moved] = place
            place = above
        ranks[place], leaves[place] = rank, leaf
        places[leaf] = place
