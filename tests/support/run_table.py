"""A run table with calls that name themselves, and a reader that only sees its changes."""

from collections.abc import Iterable
from itertools import count
from typing import Any

from kvflow.graph import Graph
from kvflow.hints import Tag
from kvflow.runs import Limits, RunTable, StepChange


class Driver:
    """A table, with calls that are named by themselves and all changes applied as they come."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.table = RunTable(limits)
        self.known: dict[tuple[str, str], int] = {}
        self._ids = map(str, count())

    def apply(self, changes: Iterable[StepChange]) -> None:
        for client, agent, steps in changes:
            assert self.known.get((client, agent)) != steps, "a change that changes nothing"
            self.known.pop((client, agent), None)
            if steps is not None:
                self.known[client, agent] = steps

    def arrive(self, agent: str, run: str = "r", client: str = "app", **extra: Any) -> str:
        call_id = next(self._ids)
        tag = Tag(client, extra.pop("workflow", "w"), run, agent, **extra)
        self.apply(self.table.arrive(tag, call_id))
        return call_id

    def finish(self, call_id: str) -> None:
        self.apply(self.table.finish(call_id))

    def call(self, agent: str, run: str = "r", client: str = "app", **extra: Any) -> None:
        self.finish(self.arrive(agent, run, client, **extra))

    def steps(self, client: str = "app") -> dict[str, int]:
        """What a reader of the changes knows; it must be what the table says."""
        assert self.known == {(c, a): s for c, a, s in self.table.steps()}
        return {agent: steps for (owner, agent), steps in self.known.items() if owner == client}


def driver(graph: Graph, limits: Limits | None = None, clients: Iterable[str] = ("app",)) -> Driver:
    made = Driver(limits)
    for client in clients:
        made.table.register(client, "w", graph)
    return made


def contents(thing: object, seen: set[int]) -> int:
    """Entries in all containers that a kvflow object reaches, graphs apart."""
    if id(thing) in seen or isinstance(thing, str | Graph):
        return 0
    seen.add(id(thing))
    if isinstance(thing, dict):
        return len(thing) + sum(contents(part, seen) for item in thing.items() for part in item)
    if isinstance(thing, list | tuple | set):
        return len(thing) + sum(contents(part, seen) for part in thing)
    names = {*getattr(thing, "__dict__", ()), *getattr(type(thing), "__slots__", ())}
    return sum(contents(getattr(thing, name), seen) for name in names)
