"""The Agent Step Graph: agents, and what must have happened before each may speak.

Source: paper section 3.1. The types are here; `kvflow.runs` walks a run through them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

START = "start"
"""The source that precedes every workflow. Reserved: no agent may have this name."""


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


def edges(trigger: Trigger) -> Iterator[Edge]:
    """The edges of a trigger, left to right."""
    if isinstance(trigger, Edge):
        yield trigger
        return
    for part in trigger.parts:
        yield from edges(part)
