"""The space between two layers: where lines leave, run level and arrive."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from kvflow.recipe.draw.layout import Cell


@dataclass(slots=True, eq=False)
class Net:
    """Lines that mean one thing: each of the sources leads to each of the targets.

    Attributes:
        sources: cells above.
        cells: cells below.
        columns: where it ends: the middles of the cells below, or a rail beside the layers.
        rail: the agent that the rail leads back to.
        ports: columns in which it leaves the sources.
        row: of its level part, from 0; None: it goes straight down.
    """

    sources: list[Cell]
    cells: list[Cell]
    columns: list[int]
    rail: str | None = None
    ports: dict[Cell, int] = field(default_factory=dict)
    row: int | None = None

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last of its columns."""
        columns = [*self.ports.values(), *self.columns]
        return min(columns), max(columns)


def route(nets: Sequence[Net], under: Callable[[Cell], range]) -> int:
    """Fill in the ports and rows of all nets of a channel.

    Args:
        nets: in no special order.
        under: columns under a cell that a line may leave it in.

    Returns:
        How many rows the level parts take.
    """
    for net in sorted(nets, key=lambda net: (len(net.columns), fmean(net.columns))):
        for source in net.sources:
            net.ports[source] = _port(net, source, nets, under(source))
    rows: list[list[tuple[int, int]]] = []
    for net in sorted(nets, key=lambda net: net.span):
        low, high = net.span
        if low == high:
            continue
        free = (row for row, taken in enumerate(rows) if all(high < a or b < low for a, b in taken))
        net.row = next(free, len(rows))
        if net.row == len(rows):
            rows.append([])
        rows[net.row].append(net.span)
    return len(rows)


def _port(net: Net, source: Cell, nets: Sequence[Net], under: range) -> int:
    """The free column under a source that suits the net best."""
    others = [other for other in nets if other is not net]
    used = {column for other in others for column in other.columns}
    used |= {other.ports[source] for other in others if source in other.ports}
    middle = under[len(under) // 2]
    if len(net.columns) == 1 and net.columns[0] in under:
        aim = net.columns[0]
    elif any(source in other.sources for other in others):
        aim = min(max(round(fmean(net.columns)), under[0]), under[-1])
    else:
        aim = middle
    free = [column for column in under if column not in used] or [middle]
    return min(free, key=lambda column: abs(column - aim))
