"""Whether what a graph foretells comes true: what never does is not prefetched for.

A wrong hint makes a prefetch of no use, and one of no use makes the loads wait that calls ask for.
So what was said is held against what came: an agent that was so many steps away either speaks, or
is farther away again before it did. Nothing has to be loaded to find that out, so a workflow that
is right again is believed again. All of it follows from broadcast requests, alike in every rank.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeVar

from kvflow.policy.lead import FARTHEST, Owner

_LEAST = 0.2
"""Of the times an agent is so near, the share in which it has to speak to be prefetched for. Over a
modelled slow link 0.2 to 0.35 did alike for wrong hints of any share, and of two or three
alternatives each is likelier than that."""

_MEMORY = 16  # times that are remembered, fading: of an agent, and of all agents of a client
_MOST_OWNERS = 4096

Name = TypeVar("Name", bound=Hashable)


@dataclass(slots=True)
class _Times:
    """How often agents were so near, and spoke; what is long ago counts less."""

    spoke: float = 0.0
    all: float = 0.0

    def note(self, spoke: bool) -> None:
        fade = 1 - 1 / _MEMORY
        self.spoke, self.all = self.spoke * fade + spoke, self.all * fade + 1

    def share(self, expected: float) -> float:
        """In which it spoke; what was expected weighs as much as one time."""
        return (self.spoke + expected) / (self.all + 1)


@dataclass(slots=True)
class _Record:
    """What became of an agent, or of those of a client, by how near it was."""

    by_steps: dict[int, _Times] = field(default_factory=dict)

    def note(self, steps: int, spoke: bool) -> None:
        self.by_steps.setdefault(steps, _Times()).note(spoke)

    def share(self, steps: int, expected: float) -> float:
        times = self.by_steps.get(steps)
        return expected if times is None else times.share(expected)


class Trust:
    """What became of agents that were near. Of a client of which nothing is known all is believed.

    Agents of which little is known are judged by the others of their client. Memory: bounded by
    `FARTHEST` for each of the agents that were near last, at most 4096, and as many clients.
    """

    def __init__(self) -> None:
        # Of an agent that is on its way: how near it has come, each of it once.
        self._reached: dict[Owner, tuple[int, ...]] = {}
        self._agents: dict[Owner, _Record] = {}
        self._clients: dict[str, _Record] = {}

    def steps_changed(self, owner: Owner, steps: int | None) -> None:
        """An agent is as near as that from now on; it speaks at 0. None: it may never. O(1).

        Args:
            owner: the agent, of whichever client.
            steps: its steps-to-execution.
        """
        reached = self._reached.pop(owner, ())
        spoke, at = steps == 0, FARTHEST + 1 if steps is None else steps
        for before in reached:
            if spoke or before < at:
                self._note(owner, before, spoke)
        if 0 < at <= FARTHEST:
            self._reached[owner] = (*(before for before in reached if before > at), at)

    def believes(self, owner: Owner, steps: int) -> bool:
        """Whether an agent that is said to be so near is likely enough to speak.

        Args:
            owner: the agent.
            steps: from 1 to `FARTHEST`.
        """
        client, agent = self._clients.get(owner[0]), self._agents.get(owner)
        of_client = 1.0 if client is None else client.share(steps, 1.0)
        return (of_client if agent is None else agent.share(steps, of_client)) >= _LEAST

    def _note(self, owner: Owner, steps: int, spoke: bool) -> None:
        _record_of(self._clients, owner[0]).note(steps, spoke)
        _record_of(self._agents, owner).note(steps, spoke)


def _record_of(records: dict[Name, _Record], name: Name) -> _Record:
    """The record of a name, which is the newest from now on; the oldest makes room for it."""
    record = records.pop(name, None) or _Record()
    if len(records) >= _MOST_OWNERS:
        del records[next(iter(records))]
    records[name] = record
    return record
