"""Which marks each agent has in the tree: one a fixed prefix, in each namespace it speaks in."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

Owner = tuple[str, str]
"""(client, agent); of tails also (client, run)."""


class Tail(NamedTuple):
    """The end of a conversation: of one agent in one run, in one namespace. Its own mark."""

    client: str
    agent: str
    extra_key: str | None
    cache_salt: str | None
    workflow: str
    run: str


Mark = TypeVar("Mark", bound=Hashable)
_SLACK = 64
_LOOKS = 4


class Marks(Generic[Mark]):
    """Marks by owner. Bounded by twice what is really in the tree, and a few."""

    def __init__(self) -> None:
        self._of: OrderedDict[Owner, dict[Mark, None]] = OrderedDict()  # a dict, for its order
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

    def crowd_out(self, most: int, is_needed: Callable[[Owner], bool]) -> list[Mark]:
        """Forget old marks that are more than so many, unless their owner is needed.

        A few at a time, O(1). Returns them.
        """
        out: list[Mark] = []
        for _ in range(_LOOKS):
            if self._count <= most:
                break
            owner, marks = next(iter(self._of.items()))
            if is_needed(owner):
                self._of.move_to_end(owner)
                continue
            out.append(next(iter(marks)))
            del marks[out[-1]]
            self._count -= 1
            if not marks:
                del self._of[owner]
        return out

    def pop(self, owner: Owner) -> Iterable[Mark]:
        """Forget the marks of an owner. Returns them."""
        marks = self._of.pop(owner, {})
        self._count -= len(marks)
        return marks

    def clear(self) -> None:
        """The tree was emptied."""
        self._of.clear()
        self._count = 0


class Tails:
    """The ends of conversations in the tree. Bounded as `Marks` are."""

    def __init__(self) -> None:
        self._by_agent: Marks[Tail] = Marks()
        self._by_run: Marks[Tail] = Marks()

    def add(self, tail: Tail) -> None:
        """A conversation ends here for now."""
        self._by_agent.add((tail.client, tail.agent), tail)
        self._by_run.add((tail.client, tail.run), tail)

    def of(self, agent: Owner) -> Iterable[Tail]:
        """The tails of an agent in all its runs; some may have ended."""
        return self._by_agent.of(agent)

    def pop_run(self, client: str, run: str) -> Iterable[Tail]:
        """A run is over. Returns its tails."""
        return self._by_run.pop((client, run))

    def keep_only(self, stands: Callable[[Tail], bool]) -> None:
        """Now and then drop the tails that have left the tree: O(1) amortised."""
        self._by_agent.keep_only(stands)
        self._by_run.keep_only(stands)

    def clear(self) -> None:
        """The tree was emptied."""
        self._by_agent.clear()
        self._by_run.clear()
