"""Which marks each agent has in the tree: one a fixed prefix, in each namespace it speaks in."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

Owner = tuple[str, str]
"""(client, agent)."""


class Prefix(NamedTuple):
    """The end of an agent's fixed prefix, in one namespace. Its mark."""

    client: str
    agent: str
    extra_key: str | None
    cache_salt: str | None


class Tail(NamedTuple):
    """The end of a conversation: of one agent in one run, in one namespace. Its own mark."""

    client: str
    agent: str
    extra_key: str | None
    cache_salt: str | None
    workflow: str
    run: str


Key = TypeVar("Key", bound=Hashable)
Mark = TypeVar("Mark", bound=Hashable)
_SLACK = 64
_LOOKS = 4


class Marks(Generic[Key, Mark]):
    """Marks by whose they are. Bounded by twice what is really in the tree, and a few."""

    def __init__(self) -> None:
        self._of: OrderedDict[Key, dict[Mark, None]] = OrderedDict()  # a dict, for its order
        self._count = 0
        self._sweep_at = _SLACK

    def __len__(self) -> int:
        return self._count

    def add(self, owner: Key, mark: Mark) -> None:
        """An owner's prefix stands in the tree."""
        marks = self._of.setdefault(owner, {})
        self._count += mark not in marks
        marks[mark] = None

    def of(self, owner: Key) -> Iterable[Mark]:
        """The marks of an owner, oldest first."""
        return self._of.get(owner, {})

    def __iter__(self) -> Iterator[Key]:
        """Everybody who has a mark."""
        return iter(self._of)

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

    def crowd_out(self, most: int, is_needed: Callable[[Key], bool]) -> list[Mark]:
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
            self.discard(owner, out[-1])
        return out

    def discard(self, owner: Key, mark: Mark) -> None:
        """Forget one mark. Nothing happens if it is not known."""
        marks = self._of.get(owner, {})
        if mark in marks:
            del marks[mark]
            self._count -= 1
            if not marks:
                del self._of[owner]

    def pop(self, owner: Key) -> Iterable[Mark]:
        """Forget the marks of an owner. Returns them."""
        marks = self._of.pop(owner, {})
        self._count -= len(marks)
        return marks

    def clear(self) -> None:
        """The tree was emptied."""
        self._of.clear()
        self._count = 0


class Tails:
    """The ends of conversations in the tree, by run. Bounded as `Marks` are."""

    def __init__(self) -> None:
        self._by_run: Marks[tuple[str, str], Tail] = Marks()

    def add(self, tail: Tail) -> None:
        """A conversation ends here for now."""
        self._by_run.add((tail.client, tail.run), tail)

    def of_run(self, client: str, run: str) -> Iterable[Tail]:
        """The tails of a run, in whatever workflows."""
        return self._by_run.of((client, run))

    def pop_run(self, client: str, run: str) -> Iterable[Tail]:
        """A run is over. Returns its tails."""
        return self._by_run.pop((client, run))

    def keep_only(self, stands: Callable[[Tail], bool]) -> None:
        """Now and then drop the tails that have left the tree: O(1) amortised."""
        self._by_run.keep_only(stands)

    def clear(self) -> None:
        """The tree was emptied."""
        self._by_run.clear()


class Speaker(NamedTuple):
    """An agent on behalf of one tenant: whose prefixes it asks for."""

    client: str
    agent: str
    cache_salt: str | None


class Prefixes:
    """The ends of fixed prefixes in the tree, by speaker and by tenant. Bounded as `Marks` are."""

    def __init__(self) -> None:
        self._by_speaker: Marks[Speaker, Prefix] = Marks()
        self._by_tenant: Marks[tuple[str, str | None], Prefix] = Marks()

    def __len__(self) -> int:
        return len(self._by_speaker)

    def add(self, prefix: Prefix) -> None:
        """A fixed prefix stands in the tree."""
        self._by_speaker.add(Speaker(prefix.client, prefix.agent, prefix.cache_salt), prefix)
        self._by_tenant.add((prefix.client, prefix.cache_salt), prefix)

    def of(self, agent: Owner, salts: Iterable[str | None]) -> Iterator[Prefix]:
        """Those of an agent that calls with these salts could find, oldest first for each.

        O(salts), however many prefixes other tenants have.
        """
        for salt in salts:
            yield from self._by_speaker.of(Speaker(*agent, salt))

    def agents(self) -> Iterator[Owner]:
        """Whose they are; an agent comes once for each of its tenants."""
        return ((speaker.client, speaker.agent) for speaker in self._by_speaker)

    def of_tenant(self, client: str, salt: str | None) -> Iterable[Prefix]:
        """Those of all agents of a client that a call with this salt could find."""
        return self._by_tenant.of((client, salt))

    def keep_only(self, stands: Callable[[Prefix], bool]) -> None:
        """Now and then drop those that have left the tree: O(1) amortised."""
        self._by_speaker.keep_only(stands)
        self._by_tenant.keep_only(stands)

    def crowd_out(self, most: int, is_needed: Callable[[Speaker], bool]) -> list[Prefix]:
        """Forget old ones beyond so many, unless their speaker is needed. Returns them."""
        out = self._by_speaker.crowd_out(most, is_needed)
        for prefix in out:
            self._by_tenant.discard((prefix.client, prefix.cache_salt), prefix)
        return out

    def clear(self) -> None:
        """The tree was emptied."""
        self._by_speaker.clear()
        self._by_tenant.clear()
