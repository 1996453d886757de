"""The agents that come next, and which of their prefixes are looked at in this scheduler pass.

There may be thousands, of many tenants, and a pass takes milliseconds. So a pass looks at a few:
at those of agents that have just come near, and at the next few of a round, nearest first. With as
few prefixes as one agent graph has, every pass looks at all of them.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import itemgetter

from kvflow.engine.marks import Owner, Prefix

_LOOKS = 32  # a pass, of each kind

Prefixes = Callable[[Owner], Iterable[Prefix]]


class Near:
    """Agents within reach of a prefetch, by their steps.

    Args:
        is_worth_it: whether anything of an agent could have to start now; else none of its
            prefixes is looked at.
        prefixes: of an agent.
    """

    def __init__(self, is_worth_it: Callable[[Owner, int], bool], prefixes: Prefixes) -> None:
        self._is_worth_it, self._prefixes = is_worth_it, prefixes
        self._steps: dict[Owner, int] = {}
        self._came: dict[Owner, None] = {}  # since the last pass
        self._round: Iterator[Prefix | None] = iter(())

    def __bool__(self) -> bool:
        return bool(self._steps)

    def __contains__(self, owner: Owner) -> bool:
        return owner in self._steps

    def put(self, owner: Owner, steps: int) -> None:
        """An agent is so near from now on."""
        self._steps[owner] = steps
        self._came[owner] = None

    def drop(self, owner: Owner) -> None:
        """It is not near any more, if it was."""
        self._steps.pop(owner, None)
        self._came.pop(owner, None)

    def steps(self, owner: Owner) -> int | None:
        """How near an agent is; None if it is not."""
        return self._steps.get(owner)

    def begin_anew(self) -> None:
        """Something was started: the next round begins with who is nearest then."""
        self._round = iter(())

    def look(self) -> tuple[list[Prefix], bool]:
        """The prefixes to look at in this pass, and whether a round begins with it."""
        came, self._came = self._came, {}
        looks = list(islice(self._of(came), _LOOKS))
        of_round = list(islice(self._round, _LOOKS))
        begins = not of_round
        if begins:
            nearest = sorted(self._steps.items(), key=itemgetter(1))
            self._round = self._of(owner for owner, _ in nearest)
            of_round = list(islice(self._round, _LOOKS))
        return [prefix for prefix in (*looks, *of_round) if prefix is not None], begins

    def _of(self, owners: Iterable[Owner]) -> Iterator[Prefix | None]:
        # An agent without anything to look at counts as a look. The tuple is a copy: marks may
        # come and go until the round is over.
        for owner in owners:
            steps = self._steps.get(owner)
            if steps is None or not self._is_worth_it(owner, steps):
                yield None
            else:
                yield from tuple(self._prefixes(owner)) or (None,)
