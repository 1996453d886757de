"""Whether what a graph foretells comes true: what never does is not prefetched for.

A wrong hint makes a prefetch of no use, and one of no use makes the loads wait that calls ask for.
So what was said is held against what came: an agent that was so many steps away either comes
nearer and speaks in its turn, or is farther away again before it did, or speaks out of turn.
Nothing has to be loaded to find that out, so a workflow that is right again is believed again. All
of it follows from broadcast requests, alike in every rank.
"""

from collections.abc import Hashable
from typing import NamedTuple, TypeVar

from kvflow.policy.lead import FARTHEST, Owner

_LEAST = 0.2
"""Of the times an agent is so near, the share in which it has to speak in its turn to be
prefetched for. Over a modelled slow link 0.2 to 0.35 did alike for wrong hints of any share, and of
two or three alternatives each is likelier than that."""

_MEMORY = 8  # times that are remembered, fading: of an agent, and of all agents of a client
_WEIGHT = 2  # times of an agent for which what is known of its client counts
_MOST = 4096  # agents, and clients

Name = TypeVar("Name", bound=Hashable)
Known = TypeVar("Known")


class _Times(NamedTuple):
    """How often an agent was so near, and spoke as foretold; what is long ago counts less."""

    foretold: float = 0.0
    all: float = 0.0

    def with_another(self, as_foretold: bool) -> "_Times":
        fade = 1 - 1 / _MEMORY
        return _Times(self.foretold * fade + as_foretold, self.all * fade + 1)

    def share(self, of_client: float) -> float:
        return (self.foretold + _WEIGHT * of_client) / (self.all + _WEIGHT)


class Trust:
    """What became of agents that were near. Of a client of which nothing is known all is believed.

    Agents of which little is known are judged by the others of their client, and all of them sooner
    where the others go wrong as well. Memory: bounded by `FARTHEST` for each of the agents that
    were near last, at most 4096, and as many clients.
    """

    def __init__(self) -> None:
        # Of an agent that is on its way: how near it has come, farthest first, each of it once.
        self._reached: dict[Owner, tuple[int, ...]] = {}
        self._agents: dict[Owner, dict[int, _Times]] = {}  # by steps
        self._clients: dict[str, dict[int, float]] = {}  # shares, by steps

    def steps_changed(self, owner: Owner, steps: int | None) -> None:
        """An agent is as near as that from now on; it speaks at 0. O(1).

        Args:
            owner: the agent, of whichever client.
            steps: its steps-to-execution. None: its runs are over, which says nothing of the graph.
        """
        reached = self._reached.pop(owner, ())
        if steps is None:
            return
        for before in reached:
            if before < steps or steps == 0:
                self._note(owner, before, as_foretold=steps == 0 and reached[-1] == 1)
        if 0 < steps <= FARTHEST:
            self._reached[owner] = (*(before for before in reached if before > steps), steps)

    def believes(self, owner: Owner, steps: int) -> bool:
        """Whether an agent that is said to be so near is likely enough to speak in its turn.

        Args:
            owner: the agent.
            steps: from 1 to `FARTHEST`.
        """
        of_client = self._clients.get(owner[0], {}).get(steps, 1.0)
        return self._agents.get(owner, {}).get(steps, _Times()).share(of_client) >= _LEAST

    def _note(self, owner: Owner, steps: int, *, as_foretold: bool) -> None:
        of_agent = _newest(self._agents, owner)
        of_agent[steps] = of_agent.get(steps, _Times()).with_another(as_foretold)
        of_client = _newest(self._clients, owner[0])
        share = of_client.get(steps, 1.0)
        of_client[steps] = share + (as_foretold - share) / _MEMORY


def _newest(known: dict[Name, dict[int, Known]], name: Name) -> dict[int, Known]:
    """What is known of a name, which is the newest from now on; the oldest makes room for it."""
    of_name = known.pop(name, {})
    if len(known) >= _MOST:
        del known[next(iter(known))]
    known[name] = of_name
    return of_name
