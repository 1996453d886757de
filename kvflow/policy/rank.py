"""What a node of the radix tree is worth: spent first, then far first, then least recently used.

Source: paper section 1.2 (Alg. 1) and invariants 8 to 10, 12, 13, 15, 18.

A *mark* says that somebody will ask for a prefix again: it sits on the node that ends the prefix
and carries the steps of the agent that owns it. The steps of a node are the least of the marks
in its subtree, for a prefix passes through every node above its end.

Each node on a marked path keeps how many of its marks stand at each number of steps, so whatever
changes a mark walks that one path, O(depth), and reading a rank is O(1). The other way, to look
at the marks below when a node becomes a leaf, would have to search: a device leaf can still have
a host-only subtree with marks of any number. Counting is also what makes steps reversible: when
a mark goes away or moves off, the next least is there, and nothing is left of it.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, NamedTuple, TypeAlias, TypeVar

Rank: TypeAlias = tuple[int, int, float, int]
"""(SPENT or KEPT, minus steps, time of last access, node id). The smaller goes first."""

SPENT, KEPT = 0, 1
IDLE = 1 << 16
"""Steps of a mark whose owner has no live run: it counts where no other mark does."""

Mark = TypeVar("Mark", bound=Hashable)


class StepCounts:
    """How many marks of a node stand at each number of steps (paper Alg. 1's counter).

    Attributes:
        least: the fewest steps among the marks; meaningless while there are none.
    """

    __slots__ = ("_counts", "least")

    def __init__(self) -> None:
        self.least = 0
        self._counts: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def copy(self) -> "StepCounts":
        """The same counts, on their own from here on."""
        twin = StepCounts()
        twin.least, twin._counts = self.least, self._counts.copy()
        return twin

    def add(self, steps: int) -> None:
        """Count one more mark at `steps`."""
        if not self._counts or steps < self.least:
            self.least = steps
        self._counts[steps] = self._counts.get(steps, 0) + 1

    def drop(self, steps: int) -> None:
        """Count one mark at `steps` less. Raises KeyError if there is none."""
        left = self._counts[steps] - 1
        if left:
            self._counts[steps] = left
            return
        del self._counts[steps]
        if steps == self.least and self._counts:
            self.least = min(self._counts)


class _End(NamedTuple):
    node: int
    steps: int


class Ranks(Generic[Mark]):
    """What is known of the nodes of one tree beyond what the tree knows: marks, and what is spent.

    It serves both tiers. Nodes are ids; whoever owns the tree reports what happens to it. Calls
    that change marks answer with the nodes whose rank is no longer what it was, from the end of
    the prefix upwards; an index that holds one of them has to be told (`EvictionOrder.reranked`).
    Memory: O(marks x depth), and one entry a spent node.

    Args:
        parent: id of the node above, or None above the topmost one. Asked only for nodes that
            are in the tree.
        untagged_steps: steps of a node that no mark passes through, or none but `IDLE` ones.
    """

    def __init__(self, parent: Callable[[int], int | None], untagged_steps: int) -> None:
        self._parent = parent
        self._untagged_steps = untagged_steps
        self._ends: dict[Mark, _End] = {}
        self._ending: dict[int, dict[Mark, None]] = {}  # a dict, for its order
        self._through: dict[int, StepCounts] = {}
        self._spent: set[int] = set()

    def rank(self, node: int, last_access: float) -> Rank:
        """The rank of a node that was last used at `last_access` (any clock that only grows)."""
        counts = self._through.get(node)
        if counts is not None:
            return KEPT, -self._worth(counts), last_access, node
        return SPENT if node in self._spent else KEPT, -self._untagged_steps, last_access, node

    def steps(self, node: int) -> int:
        """Steps of a node: the least of the prefixes that pass through it."""
        counts = self._through.get(node)
        return self._untagged_steps if counts is None else self._worth(counts)

    def is_marked(self, node: int) -> bool:
        """Whether a mark passes through the node."""
        return node in self._through

    def is_unknown(self, node: int) -> bool:
        """Whether nothing is known of the node: no mark passes through it, and it is not spent."""
        return node not in self._through and node not in self._spent

    def end(self, mark: Mark) -> int | None:
        """The node that the mark sits on; None if it sits nowhere."""
        at = self._ends.get(mark)
        return None if at is None else at.node

    def ending(self, node: int) -> Iterable[Mark]:
        """The marks that sit on a node, the one that came first before others."""
        return self._ending.get(node, ())

    def place(self, mark: Mark, node: int, steps: int) -> list[int]:
        """Set a mark on a node, from wherever it sat before. Returns the nodes to rank anew."""
        return self._change(mark, _End(node, steps))

    def set_steps(self, mark: Mark, steps: int) -> list[int]:
        """Give a mark other steps, fewer or more. Returns the nodes to rank anew.

        A mark that sits nowhere (its prefix has left the tree) is passed over.
        """
        at = self._ends.get(mark)
        if at is None or at.steps == steps:
            return []
        return self._change(mark, _End(at.node, steps))

    def lift(self, mark: Mark) -> list[int]:
        """Take a mark away: ranks are as if it had never been. Returns the nodes to rank anew."""
        return self._change(mark, None)

    def spend(self, node: int) -> bool:
        """Note that a finished call left this node behind. Returns whether its rank changed.

        A node that a mark passes through ranks by its steps all the same (invariant 15).
        """
        if node in self._spent:
            return False
        self._spent.add(node)
        return node not in self._through

    def hit(self, node: int) -> bool:
        """Note that a call has matched this node. Returns whether its rank changed."""
        if node not in self._spent:
            return False
        self._spent.remove(node)
        return node not in self._through

    def split(self, new_parent: int, child: int) -> None:
        """A node was cut in two: the suffix kept the id `child`, the prefix is `new_parent`.

        Marks stay at the end of the suffix, where they were (invariant 13), so all that pass
        through the one pass through the other. Call it once for each split, before other calls.
        """
        counts = self._through.get(child)
        if counts is not None:
            self._through[new_parent] = counts.copy()
        if child in self._spent:
            self._spent.add(new_parent)

    def removed(self, node: int, parent: int | None) -> None:
        """A node without children left the tree; `parent` is what was above it, as in `parent`.

        Marks that sat on it move up: what is left of their prefix keeps its rank. With no parent
        there is nothing left of it, and they are gone.
        """
        self._spent.discard(node)
        self._through.pop(node, None)
        ending = self._ending.pop(node, None)
        if ending is None:
            return
        for mark in ending:
            if parent is None:
                del self._ends[mark]
            else:
                self._ends[mark] = self._ends[mark]._replace(node=parent)
        if parent is not None:
            self._ending.setdefault(parent, {}).update(ending)

    def _change(self, mark: Mark, new: _End | None) -> list[int]:
        old = self._ends.get(mark)
        old_path = [] if old is None else self._path(old.node)
        new_path = [] if new is None else self._path(new.node)
        before = {node: self._least(node) for node in (*new_path, *old_path)}
        # First the new, then the old: counts on the common path never run empty in between.
        if new is not None:
            self._ends[mark] = new
            self._ending.setdefault(new.node, {})[mark] = None
            for node in new_path:
                self._through.setdefault(node, StepCounts()).add(new.steps)
        if old is not None:
            self._forget(mark, old, moved_to=new)
            for node in old_path:
                self._drop(node, old.steps)
        return [node for node, least in before.items() if self._least(node) != least]

    def _forget(self, mark: Mark, old: _End, moved_to: _End | None) -> None:
        if moved_to is None:
            del self._ends[mark]
        if moved_to is None or moved_to.node != old.node:
            del self._ending[old.node][mark]
            if not self._ending[old.node]:
                del self._ending[old.node]

    def _drop(self, node: int, steps: int) -> None:
        counts = self._through[node]
        counts.drop(steps)
        if not counts:
            del self._through[node]

    def _least(self, node: int) -> int | None:
        counts = self._through.get(node)
        return None if counts is None else counts.least

    def _worth(self, counts: StepCounts) -> int:
        return self._untagged_steps if counts.least == IDLE else counts.least

    def _path(self, node: int) -> list[int]:
        path: list[int] = []
        at: int | None = node
        while at is not None:
            path.append(at)
            at = self._parent(at)
        return path
