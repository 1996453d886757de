"""The rules of a workflow that types cannot say: names, alternatives, and what can never happen.

Cycles are allowed; a run ends through alternatives that leave a rest, or never (`repeat`).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import fsum, isclose
from typing import NamedTuple

from kvflow.graph import MAX_NESTING, START, Graph, Out
from kvflow.recipe.convert import to_graph
from kvflow.recipe.dead_ends import endless, never_start
from kvflow.recipe.model import After, AllOf, Alternative, AnyOf, Recipe
from kvflow.recipe.problem import MAX_SHOWN, Finding, Location, did_you_mean

MAX_EDGES = 4096
"""Most edges of a recipe, counted as often as they are written: each call walks all of them."""


class _Arrow(NamedTuple):
    """An edge as a recipe writes it."""

    source: str
    target: str
    p: float | None
    at: Location  # of the source's name
    depth: int  # lists around it


def check(recipe: Recipe) -> list[Finding]:
    """Everything that is wrong with the graph of a recipe.

    Args:
        recipe: of the right types.

    Returns:
        Findings; the rules about the graph as a whole are only tried once its parts are sound.
    """
    arrows = [
        arrow
        for name, spec in recipe.agents.items()
        if spec.after is not None
        for arrow in _arrows(spec.after, name, ("agents", name, "after"))
    ]
    twice = list(_twice(recipe))
    told = {finding.at for finding in twice}
    found = [
        *islice(_names(recipe, arrows), MAX_SHOWN),
        *_nesting(arrows),
        *_too_many(arrows),
        *twice,
        *(finding for finding in _shares_differ(arrows) if told.isdisjoint(_around(finding.at))),
    ]
    if found:
        return found
    graph = to_graph(recipe)
    found = [*_sums(graph, arrows), *never_start(graph)]
    return found or list(endless(graph))


def _arrows(after: After, target: str, at: Location, depth: int = 0) -> Iterator[_Arrow]:
    match after:
        case Alternative(agent=agent, p=p):
            yield _Arrow(agent, target, p, (*at, "agent"), depth)
        case AnyOf() | AllOf():
            for place, part in _parts(after, at):
                yield from _arrows(part, target, place, depth + 1)
        case _:
            yield _Arrow(after, target, None, at, depth)


def _parts(after: AnyOf | AllOf, at: Location) -> Iterator[tuple[Location, After]]:
    word, parts = ("any", after.any) if isinstance(after, AnyOf) else ("all", after.all)
    for index, part in enumerate(parts):
        yield (*at, word, index), part


def _names(recipe: Recipe, arrows: Iterable[_Arrow]) -> Iterator[Finding]:
    known = {START: None, **recipe.agents}
    for arrow in arrows:
        if arrow.source not in known:
            close = did_you_mean(arrow.source, known)
            listed = f" (agents: {', '.join(list(recipe.agents)[:10])})"
            yield Finding(arrow.at, f"unknown agent {arrow.source!r}" + (close or listed))


def _nesting(arrows: Iterable[_Arrow]) -> Iterator[Finding]:
    for arrow in arrows:
        if arrow.depth > MAX_NESTING:
            yield Finding(arrow.at, f"nested deeper than {MAX_NESTING}")


def _too_many(arrows: Sequence[_Arrow]) -> Iterator[Finding]:
    if len(arrows) > MAX_EDGES:
        yield Finding(arrows[MAX_EDGES].at, f"more than {MAX_EDGES:,} edges in one recipe")


def _twice(recipe: Recipe) -> Iterator[Finding]:
    for name, spec in recipe.agents.items():
        if isinstance(spec.after, AnyOf | AllOf):
            yield from _twice_in(spec.after, ("agents", name, "after"))


def _twice_in(after: AnyOf | AllOf, at: Location) -> Iterator[Finding]:
    word = "any" if isinstance(after, AnyOf) else "all"
    seen: dict[str, bool] = {}
    for place, part in _parts(after, at):
        if isinstance(part, AnyOf | AllOf):
            yield from _twice_in(part, place)
            continue
        choice = isinstance(part, Alternative)
        source = part.agent if isinstance(part, Alternative) else part
        if seen.get(source) == choice:
            both = f"all over two alternatives of {source!r}: only one of them is ever taken"
            plain = f"{source!r} is named twice in one {word}"
            yield Finding(place, both if choice and word == "all" else plain)
        seen.setdefault(source, choice)


def _shares_differ(arrows: Iterable[_Arrow]) -> Iterator[Finding]:
    """An edge is always taken or an alternative, wherever a trigger names it."""
    seen: dict[tuple[str, str], float | None] = {}
    for arrow in arrows:
        first = seen.setdefault((arrow.source, arrow.target), arrow.p)
        if first != arrow.p:
            yield Finding(
                arrow.at,
                f"{arrow.source!r} is named {_with(first)} and {_with(arrow.p)}: "
                "an edge is either always taken or an alternative with one p",
            )


def _around(at: Location) -> tuple[Location, Location]:
    """The place of a source's name, and that of the alternative that holds it."""
    return at, at[:-1]


def _with(p: float | None) -> str:
    return "without p" if p is None else f"with p {p:g}"


def _sums(graph: Graph, arrows: Sequence[_Arrow]) -> Iterator[Finding]:
    for source in (START, *graph.agents):
        outs = [out for out in graph.out(source) if out.p is not None]
        total = fsum(out.p or 0 for out in outs)
        if total > 1 and not isclose(total, 1):
            why = "at most 1 of a finished call can be shared out"
        elif source == START and outs and len(outs) == len(graph.out(START)) and total < 1:
            why = "the rest of the runs would end before they began"
        else:
            continue
        last = next(a for a in reversed(arrows) if a.source == source and a.p is not None)
        yield Finding(
            (*last.at[:-1], "p"),
            f"the alternatives out of {source!r} sum to {total:g} ({_shared(outs)}): {why}",
        )


def _shared(outs: Iterable[Out]) -> str:
    return ", ".join(f"{out.target} {out.p:g}" for out in outs)
