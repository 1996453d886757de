"""One live run as the table holds it: its calls by id, and where its steps come from.

In order: what the client gave with its calls; else the walk through the registered graph; else
nothing. In any case an agent with a call in flight has 0.
"""

from enum import Enum, auto
from typing import NamedTuple

from kvflow.graph import Graph
from kvflow.hints import Tag
from kvflow.runs.run import Run


class Key(NamedTuple):
    """What a live run is known by."""

    client: str
    workflow: str
    run: str


class Arrival(Enum):
    """How a call stands to what is known of its run."""

    EXPECTED = auto()
    UNEXPECTED = auto()  # its agent is in the graph, but not due
    GIVEN = auto()  # the client gives the steps of this run
    UNKNOWN = auto()  # no graph, or no such agent in it


class _Call(NamedTuple):
    agent: str
    walked: bool  # it moves the walk; else it only counts while in flight
    final: bool


class LiveRun:
    """A run with a call in flight, or of which more is expected.

    Attributes:
        key: client, workflow and run.
        walk: through the workflow's graph; None until a call of one of its agents arrives.
        published: the steps that the table has counted for it.
    """

    def __init__(self, key: Key) -> None:
        self.key = key
        self.walk: Run | None = None
        self.published: dict[str, int] = {}
        self._given: dict[str, int] | None = None
        self._loose: dict[str, int] = {}  # calls in flight that are not walked, by agent
        self._calls: dict[str, _Call] = {}
        self._is_heir = False
        self._closing = False

    @property
    def call_ids(self) -> list[str]:
        """Ids of its calls in flight."""
        return list(self._calls)

    @property
    def expects_next(self) -> bool:
        """Whether it stands for a run of its workflow that has not begun."""
        return self._given is None and self.walk is not None and self.walk.expects_next

    @property
    def expects_only_next(self) -> bool:
        """Whether it stands for such a run, and nothing else is expected of it."""
        return self.expects_next and self.walk is not None and self.walk.expects_only_next

    @property
    def over(self) -> bool:
        """Whether no call of it is in flight and none is expected."""
        return not self._calls and self._given is None and (self.walk is None or self.walk.ended)

    @property
    def closed(self) -> bool:
        """Whether its final call has its answer and no other is in flight."""
        return self._closing and not self._calls

    def in_flight(self) -> dict[str, int]:
        """Calls in flight by agent."""
        calls = dict(self.walk.in_flight) if self.walk else {}
        for agent, count in self._loose.items():
            calls[agent] = calls.get(agent, 0) + count
        return calls

    def steps(self) -> dict[str, int]:
        """Steps of every agent that the run knows of."""
        if self._given is not None:
            return self._given | dict.fromkeys(self.in_flight(), 0)
        return (self.walk.steps() if self.walk else {}) | dict.fromkeys(self._loose, 0)

    def lacks_walk(self, tag: Tag, graph: Graph | None) -> bool:
        """Whether this call, about to arrive, is the first that the graph knows."""
        walks = self._given is None and tag.steps is None and self.walk is None
        return walks and graph is not None and tag.agent in graph.agents

    def begin(self, graph: Graph, is_heir: bool) -> None:
        """Start to walk the graph; an heir takes the place of a run that was expected."""
        self.walk, self._is_heir = Run(graph), is_heir

    def arrive(self, call_id: str, tag: Tag) -> Arrival:
        """A call is here."""
        if tag.steps is not None:
            self._given = dict(tag.steps)
        walk = self.walk if self._given is None else None
        walked = walk is not None and tag.agent in walk.graph.agents
        self._calls[call_id] = _Call(tag.agent, walked, tag.final)
        if walk is not None and walked:
            return Arrival.EXPECTED if walk.arrive(tag.agent) else Arrival.UNEXPECTED
        self._loose[tag.agent] = self._loose.get(tag.agent, 0) + 1
        return Arrival.UNKNOWN if self._given is None else Arrival.GIVEN

    def finish(self, call_id: str) -> None:
        """A call has its answer; if it is the final one, the run closes."""
        call = self._calls.pop(call_id)
        self._closing |= call.final
        if call.walked and self.walk is not None:
            self.walk.finish(call.agent)
        else:
            self._loosen(call.agent)

    def abort(self, call_id: str) -> None:
        """A call went away unanswered; a run that it alone had opened was not opened."""
        call = self._calls.pop(call_id)
        if not call.walked or self.walk is None:
            self._loosen(call.agent)
            return
        self.walk.abort(call.agent)
        if not self.walk.begun and not self._is_heir:
            self.walk = None

    def end(self) -> None:
        """Nothing more comes of it, but with `repeat` the next run is expected in its place.

        Not after the next run has begun elsewhere (`Run.follow`), nor if the client gives steps.
        """
        graph = self.walk.graph if self.walk is not None and self._given is None else None
        self._is_heir = graph is not None and graph.repeat
        self.walk = Run(graph) if graph is not None and self._is_heir else None
        self._calls, self._loose, self._given, self._closing = {}, {}, None, False

    def _loosen(self, agent: str) -> None:
        self._loose[agent] -= 1
        if not self._loose[agent]:
            del self._loose[agent]
