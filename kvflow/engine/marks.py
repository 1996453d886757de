"""Which marks each agent has in the tree: one a fixed prefix, in each namespace it speaks in."""

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

Owner = tuple[str, str]
"""(client, agent)."""

Mark = TypeVar("Mark", bound=Hashable)
_SLACK = 64


class Marks(Generic[Mark]):
    """Marks by owner. Bounded by twice what is really in the tree, and a few."""

    def __init__(self) -> None:
        self._of: dict[Owner, dict[Mark, None]] = {}  # a dict, for its order
        self._count = 0
        self._sweep_at = _SLACK

    def __len__(self) -> int:
        return self._count

    def add(self, owner: Owner, mark: Mark) -> None:
        """An owner's prefix stands in the tree."""
        marks = self._of.setdefault(owner, {})
        self._count += mark not in marks
        marks[mark] = None

    def of(self, owner: Owner) -> Iterable[Mark]:
        """The marks of an owner, oldest first."""
        return self._of.get(owner, {})

    def items(self) -> Iterable[tuple[Owner, Mark]]:
        """Every owner's marks."""
        return [(owner, mark) for owner, marks in self._of.items() for mark in marks]

    def keep_only(self, stands: Callable[[Mark], bool]) -> None:
        """Now and then drop the marks whose prefix has left the tree: O(1) amortised."""
        if self._count < self._sweep_at:
            return
        for owner, marks in list(self._of.items()):
            left = {mark: None for mark in marks if stands(mark)}
            if left:
                self._of[owner] = left
            else:
                del self._of[owner]
        self._count = sum(map(len, self._of.values()))
        self._sweep_at = 2 * self._count + _SLACK

    def clear(self) -> None:
        """The tree was emptied."""
        self._of.clear()
        self._count = 0
