"""The Agent Step Graph: agents, what must have happened before each speaks, and how far off it is.

Source: paper section 3.1 (the graph, max and min); invariants 1 to 6 for what it leaves open.
`Graph.steps` values one moment of a run; `kvflow.runs` walks a run from moment to moment.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from types import MappingProxyType
from typing import NamedTuple

START = "start"
"""The source that precedes every workflow. Reserved: no agent may have this name."""

MAX_STEPS = 64
"""Steps are clipped here: what is this far off, or out of reach, is all the same to a cache."""

MAX_NESTING = 32
"""Deepest nesting of a trigger: recipes come over the network, and recursion has a floor."""

Arrow = tuple[str, str]
"""An edge by its ends, (source, target). A token lies on an arrow."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One arrow into an agent.

    Attributes:
        source: name of the agent it comes from, or START.
        p: share of the source's finished calls that take it; such edges out of one source are
            alternatives (their sum is at most 1; what is left ends the run). None: always taken.
    """

    source: str
    p: float | None = None


@dataclass(frozen=True, slots=True)
class All:
    """A barrier: every part must have happened (paper: AND, max)."""

    parts: tuple["Trigger", ...]


@dataclass(frozen=True, slots=True)
class Either:
    """A branch: one part is enough (paper: OR, min)."""

    parts: tuple["Trigger", ...]


Trigger = Edge | All | Either


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent and what it waits for.

    Attributes:
        name: unique in its graph.
        trigger: over edges from its predecessors.
        fan_out: least and most calls that one activation makes, in parallel.
    """

    name: str
    trigger: Trigger = Edge(START)
    fan_out: tuple[int, int] = (1, 1)


class Out(NamedTuple):
    """One arrow out of an agent (or START)."""

    target: str
    p: float | None  # see Edge.p


def edges(trigger: Trigger) -> Iterator[Edge]:
    """The edges of a trigger, left to right."""
    if isinstance(trigger, Edge):
        yield trigger
        return
    for part in trigger.parts:
        yield from edges(part)


class Graph:
    """The agents of a workflow and the arrows between them; immutable.

    Args:
        agents: in the order in which every result lists them.
        repeat: whether a finished run is followed by another one: START then follows any terminal
            agent, so that entry agents have finite steps all along.

    Raises:
        ValueError: a name is used twice or is START, an edge comes from no agent of the graph, a
            barrier or branch is empty or nested deeper than MAX_NESTING, or one arrow is given
            with two different p.
    """

    def __init__(self, agents: Iterable[Agent], repeat: bool = False) -> None:
        self.agents: Mapping[str, Agent] = MappingProxyType(_by_name(agents))
        self.repeat = repeat
        self._gates: list[_Gate] = []
        self._feeds: dict[Arrow, list[int]] = {}
        for agent in self.agents.values():
            self._add_gates(agent.name, agent.trigger, None)
        self._out = _arrows_out(self.agents)
        if repeat and (ends := [Edge(name) for name in self.agents if self.is_terminal(name)]):
            self._add_gates(START, Either(tuple(ends)), None)
        self._arrows: dict[str, tuple[Arrow, ...]] = {}
        for arrow in self._feeds:
            self._arrows[arrow[0]] = (*self._arrows.get(arrow[0], ()), arrow)

    def out(self, source: str) -> tuple[Out, ...]:
        """The arrows out of an agent or START, in the order of their targets' declaration."""
        return self._out[source]

    def arrows(self, source: str) -> tuple[Arrow, ...]:
        """Where a finished call of an agent (or START) puts tokens.

        With `repeat` that includes the arrow from a terminal agent to START.
        """
        return self._arrows.get(source, ())

    @cached_property
    def once(self) -> "Graph":
        """The same agents without `repeat`: the graph of a run whose next run has begun."""
        return Graph(self.agents.values()) if self.repeat else self

    def is_terminal(self, name: str) -> bool:
        """Whether a run may end with it: nothing follows, or its alternatives leave a rest."""
        outs = self._out[name]
        shares = [out.p for out in outs if out.p is not None]
        # The tolerance is for shares such as ten times 0.1, which are meant to sum to 1.
        return not outs or (bool(shares) and fsum(shares) < 1 - 1e-9)

    def is_ready(self, name: str, tokens: Collection[Arrow]) -> bool:
        """Whether the tokens alone satisfy the trigger of an agent: it may start now."""
        return _holds(self.agents[name].trigger, name, tokens)

    def steps(
        self, tokens: Collection[Arrow], in_flight: Collection[str], due: Collection[str] = ()
    ) -> dict[str, int]:
        """Steps-to-execution of every agent at one moment of a run.

        Source: paper section 3.1; invariants 1 to 4. The value of an edge is 0 if it
        holds a token, else the steps of its source; an agent has 1 + max over a barrier, min over
        a branch, nested freely. The least fixpoint, by Knuth's generalisation of Dijkstra's
        algorithm: max, min and +1 never fall below their arguments, so the agent with the
        smallest value so far is final. O(E log V), cycles included.

        Args:
            tokens: the arrows that hold one; others than the graph's are ignored.
            in_flight: agents with a call that arrived and did not finish; they count as 0.
            due: agents that may speak at any time (the rest of a fan-out); at most 1.

        Returns:
            Steps by agent in declaration order, clipped at MAX_STEPS; MAX_STEPS if out of reach.
        """
        found = self._distances(tokens, in_flight, due)
        return {name: min(found.get(name, MAX_STEPS), MAX_STEPS) for name in self.agents}

    def _distances(
        self, tokens: Collection[Arrow], in_flight: Collection[str], due: Collection[str]
    ) -> dict[str, int]:
        missing = [gate.need for gate in self._gates]
        held = dict.fromkeys(tokens)
        final: dict[str, int] = {}
        heap = [(0, name) for name in in_flight] + [(1, name) for name in due]
        heapq.heapify(heap)

        def arrive(arrow: Arrow, value: int) -> None:
            # Parts come in rising order: the last one of a barrier is its max, the first of a
            # branch its min; later parts of an open branch find it below zero.
            for index in self._feeds.get(arrow, ()):
                at: int | None = index
                while at is not None:
                    missing[at] -= 1
                    if missing[at] != 0:
                        break
                    gate = self._gates[at]
                    if gate.feeds is None:
                        heapq.heappush(heap, (value + (gate.agent != START), gate.agent))
                    at = gate.feeds

        for arrow in held:
            arrive(arrow, 0)
        while heap:
            value, name = heapq.heappop(heap)
            if name in final:
                continue
            final[name] = value
            for arrow in self._arrows.get(name, ()):
                if arrow not in held:
                    arrive(arrow, value)
        return final

    def _add_gates(self, agent: str, trigger: Trigger, feeds: int | None, depth: int = 0) -> None:
        if depth > MAX_NESTING:
            raise ValueError(f"the trigger of {agent!r} is nested deeper than {MAX_NESTING}")
        if isinstance(trigger, Edge) and feeds is not None:
            self._feeds.setdefault((trigger.source, agent), []).append(feeds)
            return
        parts = (trigger,) if isinstance(trigger, Edge) else trigger.parts
        if not parts:
            raise ValueError(f"the trigger of {agent!r} has a barrier or branch without parts")
        index = len(self._gates)
        self._gates.append(_Gate(agent, len(parts) if isinstance(trigger, All) else 1, feeds))
        for part in parts:
            self._add_gates(agent, part, index, depth + 1)


class _Gate(NamedTuple):
    """Where the parts of a trigger meet; a trigger of one edge has a gate of its own, too."""

    agent: str  # whose trigger
    need: int  # parts that open it: all of a barrier, one of a branch
    feeds: int | None  # the gate around it; None: it is the whole trigger


def _by_name(agents: Iterable[Agent]) -> dict[str, Agent]:
    named: dict[str, Agent] = {}
    for agent in agents:
        if agent.name == START:
            raise ValueError(f"an agent cannot have the reserved name {START!r}")
        if agent.name in named:
            raise ValueError(f"two agents have the name {agent.name!r}")
        named[agent.name] = agent
    return named


def _arrows_out(agents: Mapping[str, Agent]) -> dict[str, tuple[Out, ...]]:
    out: dict[str, dict[str, float | None]] = {name: {} for name in (START, *agents)}
    for agent in agents.values():
        for edge in edges(agent.trigger):
            if edge.source not in out:
                raise ValueError(f"{agent.name!r} is after {edge.source!r}, which is no agent")
            known = out[edge.source]
            if agent.name in known and known[agent.name] != edge.p:
                raise ValueError(f"the edge {edge.source!r} to {agent.name!r} has two different p")
            known[agent.name] = edge.p
    return {name: tuple(Out(*item) for item in targets.items()) for name, targets in out.items()}


def _holds(trigger: Trigger, agent: str, tokens: Collection[Arrow]) -> bool:
    if isinstance(trigger, Edge):
        return (trigger.source, agent) in tokens
    check = all if isinstance(trigger, All) else any
    return check(_holds(part, agent, tokens) for part in trigger.parts)
