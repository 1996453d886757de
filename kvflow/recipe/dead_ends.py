"""Agents that no run can reach, and runs that cannot end.

Refused is only what is certain: an agent passes if there may be a way to it.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kvflow.graph import START, Agent, All, Arrow, Edge, Graph, Trigger, edges
from kvflow.recipe.problem import Finding

Choices = frozenset[Arrow]
"""Alternatives that must have been taken before something can happen."""


class _Block(NamedTuple):
    """Why a trigger can never hold."""

    source: str | None  # it needs this agent, which can never start
    clash: tuple[Arrow, Arrow] | None  # or both of these, of which a run takes one


def never_start(graph: Graph) -> Iterator[Finding]:
    """Agents whose trigger can never hold, each with the reason; a circle is told once."""
    ways = _Ways(graph)
    blocks = {
        name: ways.block(agent.trigger, name)
        for name, agent in graph.agents.items()
        if ways.needed[name] is None
    }
    told: set[str] = set()
    for name, block in blocks.items():
        circle = _circle(name, blocks)
        if name not in told:
            told.update(circle)
            why = _words(block, circle)
            yield Finding(("agents", name, "after"), f"{name!r} can never start: {why}")


def endless(graph: Graph) -> Iterator[Finding]:
    """The first agent from which a run can never end, unless runs are meant to (`repeat`)."""
    if graph.repeat:
        return
    ending = {name for name in graph.agents if graph.is_terminal(name)}
    fresh = bool(ending)
    while fresh:
        before = {
            name
            for name in graph.agents
            if name not in ending and any(out.target in ending for out in graph.out(name))
        }
        ending |= before
        fresh = bool(before)
    lost = next((name for name in graph.agents if name not in ending), None)
    if lost is not None:
        yield Finding(
            ("agents", lost),
            f"a run that reaches {lost!r} can never end: let alternatives sum to less than 1 "
            "somewhere behind it, or set repeat: true",
        )


class _Ways:
    """What all ways to an agent have in common.

    Attributes:
        needed: by agent, the choices that every way to it has taken; None: no way leads to it.
    """

    def __init__(self, graph: Graph) -> None:
        self._once = _reached_once(graph)
        self.needed: dict[str, Choices | None] = dict.fromkeys(graph.agents)
        self.needed[START] = frozenset()
        fresh: Iterable[str] = graph.agents
        # None is only ever left and sets only shrink, so that this ends.
        while changed := [name for name in fresh if self._narrow(graph.agents[name])]:
            fresh = dict.fromkeys(out.target for name in changed for out in graph.out(name))

    def block(self, trigger: Trigger, target: str) -> _Block:
        """Why a trigger without a way can never hold."""
        if isinstance(trigger, Edge):
            return _Block(trigger.source, None)
        for part in trigger.parts:
            if self._choices(part, target) is None:
                return self.block(part, target)
        taken: dict[str, Arrow] = {}
        for part in trigger.parts:
            for arrow in sorted(self._choices(part, target) or ()):
                first = taken.setdefault(arrow[0], arrow)
                if first != arrow:
                    return _Block(None, (first, arrow))
        raise AssertionError(f"{target!r} has a way")

    def _narrow(self, agent: Agent) -> bool:
        """Look again at the ways to an agent: whether they have less in common than was known."""
        before, now = self.needed[agent.name], self._choices(agent.trigger, agent.name)
        self.needed[agent.name] = now
        return now != before

    def _choices(self, trigger: Trigger, target: str) -> Choices | None:
        if isinstance(trigger, Edge):
            needed = self.needed[trigger.source]
            if needed is None or trigger.p is None or trigger.source not in self._once:
                return needed
            return needed | {(trigger.source, target)}
        parts = [self._choices(part, target) for part in trigger.parts]
        ways = [part for part in parts if part is not None]
        if isinstance(trigger, All):
            taken = frozenset().union(*ways)
            both = len(taken) > len({source for source, _ in taken})
            return None if both or len(ways) < len(parts) else taken
        return frozenset.intersection(*ways) if ways else None


def _reached_once(graph: Graph) -> set[str]:
    """Agents (and START) that a run reaches at most once: no branch leads to them, no cycle."""
    sources = {
        name: {edge.source for edge in edges(agent.trigger)}
        for name, agent in graph.agents.items()
        if _is_one_way(agent.trigger)
    }
    once = {START}
    while found := {name for name in sources.keys() - once if sources[name] <= once}:
        once |= found
    return once


def _is_one_way(trigger: Trigger) -> bool:
    if isinstance(trigger, Edge):
        return True
    branch = not isinstance(trigger, All) and len(trigger.parts) > 1
    return not branch and all(map(_is_one_way, trigger.parts))


def _circle(name: str, blocks: dict[str, _Block]) -> list[str]:
    """The agents that wait for each other, from `name` round to the one before it; or none."""
    chain = [name]
    while (source := blocks[chain[-1]].source) is not None and source not in chain:
        chain.append(source)
    return chain if blocks[chain[-1]].source == name else []


def _words(block: _Block, circle: list[str]) -> str:
    if block.clash is not None:
        (source, one), (_, other) = block.clash
        return (
            f"it needs both {one!r} and {other!r}, two alternatives of {source!r}, "
            "of which only one is ever taken"
        )
    if not circle:
        return f"it waits for {block.source!r}, which can never start"
    waits = [f"waits for {name!r}" for name in circle[1:]]
    return "it " + ", which ".join(
        [*waits, "waits for itself" if not waits else f"waits for {circle[0]!r}"]
    )
