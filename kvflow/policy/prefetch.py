"""What is brought back from the host before it is asked for, and whether there is room for it.

Source: paper sections 3.2 and 3.3; invariants 23 to 26 and 29. Pure: the engine says what stands
where, and starts the copies.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kvflow.policy.lead import Owner
from kvflow.policy.rank import SPENT, Rank

_PARTS = 8  # at least, in which a long prefix can be loaded


class Candidate(NamedTuple):
    """A fixed prefix whose agent speaks soon and part of which is on the host alone.

    Attributes:
        steps: of its agent.
        waiting: live runs in which the agent is that near.
        tokens: that would have to be loaded, all or none.
        node: id of the node that ends the prefix.
        owner: client and agent whose prefix it is.
    """

    steps: int
    waiting: int
    tokens: int
    node: int
    owner: Owner


class Victim(NamedTuple):
    """A node that evictions would take next."""

    tokens: int
    rank: Rank


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Nearest first, then what more runs wait for, then what is loaded sooner; ties by node."""
    return sorted(candidates, key=lambda one: (one.steps, -one.waiting, one.tokens, one.node))


def victims_before(victims: Iterable[Victim], steps: int) -> Iterator[Victim]:
    """The victims that may go for a prefix that is needed in so many steps.

    Spent nodes, and nodes that are needed later than it; never one that is needed as soon or
    sooner (invariant 24). Since victims come far first, the walk ends at the first that is not.
    """
    for victim in victims:
        group, negative_steps, *_ = victim.rank
        if group != SPENT and -negative_steps <= steps:
            return
        yield victim


def has_room(candidate: Candidate, free: int, reserve: int, victims: Iterable[Victim]) -> bool:
    """Whether a prefix can be loaded without taking what is needed as soon, or the reserve.

    Args:
        candidate: the prefix.
        free: free device slots, in tokens.
        reserve: slots that running requests will want, in tokens.
        victims: what evictions would take, in order; looked at only as far as needed.
    """
    lacking = candidate.tokens + reserve - free
    for victim in victims_before(victims, candidate.steps):
        if lacking <= 0:
            break
        lacking -= victim.tokens
    return lacking <= 0


class Cuts:
    """Where a prefix may be cut, so that it can come in several copies.

    A node that was cut is never joined again. So cuts are at multiples, from the beginning of the
    prefix, of a page times a power of two: however much is loaded at once, today and tomorrow, it
    is cut in the same few places.

    Args:
        length: of the prefix, in tokens.
        page: tokens a page.

    Attributes:
        part: tokens from cut to cut, where no less is loaded at once.
    """

    def __init__(self, length: int, page: int) -> None:
        self._length, self._page = length, page
        self.part = self._grid(length)

    def up(self, there: int, tokens: int) -> int:
        """How many tokens to load after those that are there: so many, and up to a cut."""
        return min(self._length, -(-(there + tokens) // self.part) * self.part) - there

    def down(self, there: int, tokens: int) -> int:
        """Likewise: no more than so many, down to a cut; at least a page."""
        grid = self._grid(tokens)
        return (there + max(tokens, grid)) // grid * grid - there

    def _grid(self, most: int) -> int:
        pages = max(1, min(most, self._length // _PARTS) // self._page)
        return self._page << (pages.bit_length() - 1)
