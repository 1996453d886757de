"""How many live runs hold each value of steps for each agent, and the least of them.

Source: paper section 3.1, Algorithm 1: the counter per step is what lets a value rise again when
the run that held it moves on, ends or expires (invariants 8 to 10). A running minimum
alone could only fall.
"""

from collections.abc import Iterator
from typing import NamedTuple


class StepChange(NamedTuple):
    """The steps of an agent are others than before the event."""

    client: str
    agent: str
    steps: int | None  # least over the client's live runs; None: no live run has the agent


class StepCounts:
    """Steps by (client, agent), each with the number of live runs that hold it.

    Changes are gathered until they are drained, so that an agent that several runs move within
    one event is reported once, or not at all if it ends where it began.
    """

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, dict[int, int]]] = {}
        self._before: dict[tuple[str, str], int | None] = {}

    def move(self, client: str, agent: str, old: int | None, new: int | None) -> None:
        """One run's value of an agent goes from old to new; None: it has no value.

        O(MAX_STEPS) at worst.
        """
        self._before.setdefault((client, agent), self.least(client, agent))
        agents = self._counts.setdefault(client, {})
        counts = agents.setdefault(agent, {})
        if new is not None:
            counts[new] = counts.get(new, 0) + 1
        if old is not None:
            counts[old] -= 1
            if not counts[old]:
                del counts[old]
        if not counts:
            del agents[agent]
        if not agents:
            del self._counts[client]

    def drain(self) -> list[StepChange]:
        """What has changed since the last time, in the order in which the agents first moved."""
        changes = [
            StepChange(client, agent, steps)
            for (client, agent), before in self._before.items()
            if (steps := self.least(client, agent)) != before
        ]
        self._before.clear()
        return changes

    def least(self, client: str, agent: str) -> int | None:
        """The steps of an agent: the least over the client's live runs, None without any."""
        return min(self._of(client, agent), default=None)

    def waiting(self, client: str, agent: str) -> int:
        """How many live runs hold the least value: as many calls may come that soon."""
        counts = self._of(client, agent)
        return counts[min(counts)] if counts else 0

    def agents(self, client: str) -> int:
        """How many agents of a client have steps."""
        return len(self._counts.get(client, ()))

    def __iter__(self) -> Iterator[StepChange]:
        for client, agents in self._counts.items():
            for agent, counts in agents.items():
                yield StepChange(client, agent, min(counts))

    def _of(self, client: str, agent: str) -> dict[int, int]:
        return self._counts.get(client, {}).get(agent, {})
