"""Small workflows and a way through them, call after call."""

from collections.abc import Iterable

from kvflow.graph import Agent, All, Edge, Graph
from kvflow.runs import Run


def walk(run: Run, calls: Iterable[str]) -> Run:
    """Let calls come and go, one after the other."""
    for agent in calls:
        run.arrive(agent)
        run.finish(agent)
    return run


def parallel() -> Graph:
    """A join of two branches that start together, and a bystander of the first."""
    join = Agent("join", All((Edge("left"), Edge("right"))))
    return Graph([Agent("left"), Agent("right"), join, Agent("log", Edge("left"))])


def choice(rest: float = 0.0) -> Graph:
    """One of two agents after the first, or neither."""
    share = (1 - rest) / 2
    return Graph([Agent("ask"), Agent("yes", Edge("ask", share)), Agent("no", Edge("ask", share))])
