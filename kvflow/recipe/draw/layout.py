"""Where each agent of a graph stands: in layers from START down, side by side within a layer."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import floor
from statistics import fmean
from typing import NamedTuple

from kvflow.graph import START, Graph

GAP = 3
"""Columns between two neighbours."""


class Cell(NamedTuple):
    """A place in a layer: an agent, or an arrow of it that passes by on the way further down."""

    layer: int
    agent: str
    to: str = ""  # where the arrow leads; empty: it is the agent itself

    @property
    def passes(self) -> bool:
        """Whether an arrow passes here."""
        return bool(self.to)


class Arrows(NamedTuple):
    """The sources of each target: of arrows that lead down, and of arrows that lead back."""

    down: dict[str, list[str]]  # START and every agent, also those without
    back: dict[str, list[str]]  # only agents that have some


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything stands.

    Attributes:
        layers: cells from left to right, START's layer first.
        centre: column of the middle of a cell.
        sources: cells of the layer above that lead to a cell.
        back: see Arrows.
    """

    layers: list[list[Cell]]
    centre: Mapping[Cell, int]
    sources: Mapping[Cell, list[Cell]]
    back: Mapping[str, list[str]]


def arrows(graph: Graph) -> Arrows:
    """Which way each arrow leads: back if it closes a circle towards START, else down."""
    order = [START, *graph.agents]
    near = graph.steps([(START, out.target) for out in graph.out(START)], ())
    rank = {name: (near.get(name, 0), place) for place, name in enumerate(order)}
    behind = {name: _behind(graph, name) for name in order}
    found = Arrows({name: [] for name in order}, {})
    for source in order:
        for target, _ in graph.out(source):
            if source in behind[target] and rank[target] <= rank[source]:
                found.back.setdefault(target, []).append(source)
            else:
                found.down[target].append(source)
    return found


def lay_out(graph: Graph, width: Callable[[Cell], int]) -> Layout:
    """Place the agents of a graph, each below everything that leads down to it.

    Args:
        graph: every agent of it can be reached.
        width: columns that a cell needs.
    """
    down, back = arrows(graph)
    layers, sources = _cells(down, _depth(down))
    order = {name: place for place, name in enumerate(down)}
    return Layout(*_place(layers, sources, order, width), sources, back)


def _behind(graph: Graph, name: str) -> set[str]:
    """Everything that can be reached from an agent, itself included."""
    found, fresh = {name}, [name]
    while fresh:
        for target, _ in graph.out(fresh.pop()):
            if target not in found:
                found.add(target)
                fresh.append(target)
    return found


def _depth(down: Mapping[str, list[str]]) -> dict[str, int]:
    """Longest way from START."""
    depth: dict[str, int] = {}
    while len(depth) < len(down):
        for name, sources in down.items():
            if name not in depth and all(source in depth for source in sources):
                depth[name] = 1 + max((depth[source] for source in sources), default=-1)
    return depth


def _cells(
    down: Mapping[str, list[str]], depth: Mapping[str, int]
) -> tuple[list[list[Cell]], dict[Cell, list[Cell]]]:
    layers: list[list[Cell]] = [[] for _ in range(max(depth.values()) + 1)]
    sources: dict[Cell, list[Cell]] = {}
    for name, before in down.items():
        cell = Cell(depth[name], name)
        layers[cell.layer].append(cell)
        sources[cell] = []
        for source in before:
            above = Cell(depth[source], source)
            for layer in range(depth[source] + 1, cell.layer):
                passing = Cell(layer, source, to=name)
                layers[layer].append(passing)
                sources[passing] = [above]
                above = passing
            sources[cell].append(above)
    return layers, sources


def _place(
    layers: Iterable[list[Cell]],
    sources: Mapping[Cell, list[Cell]],
    order: Mapping[str, int],
    width: Callable[[Cell], int],
) -> tuple[list[list[Cell]], dict[Cell, int]]:
    """Each cell near below its sources, layer by layer."""
    centre: dict[Cell, int] = {}
    placed: list[list[Cell]] = []
    for layer in layers:
        wanted = {c: fmean([centre[s] for s in sources[c]] or [0]) for c in layer}
        row = sorted(layer, key=lambda cell: (wanted[cell], order[cell.agent], cell.to))
        widths = [width(cell) for cell in row]
        spread = _spread([wanted[cell] for cell in row], widths)
        above = [[centre[source] for source in sources[cell]] for cell in row]
        centre |= dict(zip(row, _nudged(spread, widths, above), strict=True))
        placed.append(row)
    edge = min(at - width(cell) // 2 for cell, at in centre.items())
    return placed, {cell: at - edge for cell, at in centre.items()}


def _spread(wanted: list[float], widths: list[int]) -> list[int]:
    """Centres in order, as near to the wanted ones as the widths allow (least squares).

    With the widths taken off, neighbours may stand on each other but not pass: isotonic regression,
    by pooling neighbours that would pass.
    """
    shift = [0.0]
    for left, right in pairwise(widths):
        shift.append(shift[-1] + _apart(left, right) + GAP)
    pools: list[list[float]] = []
    for wish, taken in zip(wanted, shift, strict=True):
        pools.append([wish - taken])
        while len(pools) > 1 and fmean(pools[-2]) > fmean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    means = [fmean(pool) for pool in pools for _ in pool]
    return [floor(mean + taken + 0.5) for mean, taken in zip(means, shift, strict=True)]


def _nudged(centres: list[int], widths: list[int], above: list[list[int]]) -> list[int]:
    """Centres moved right below a source where that is near: lines then run straight."""
    moved = list(centres)
    for place, sources in enumerate(above):
        near = [source for source in sources if abs(source - centres[place]) < GAP]
        was, moved[place] = moved[place], near[0] if near else moved[place]
        pairs = zip(pairwise(moved), pairwise(widths), strict=True)
        if any(right - left <= _apart(*both) for (left, right), both in pairs):
            moved[place] = was
    return moved


def _apart(left: int, right: int) -> int:
    """Columns between the centres of two cells of these widths that touch."""
    return left // 2 + right // 2 + 1
