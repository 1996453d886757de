"""A graph as a picture: agents in layers, arrows down between them, arrows back on rails beside."""

from collections.abc import Mapping

from kvflow.graph import START, All, Edge, Graph
from kvflow.recipe.draw.canvas import Canvas
from kvflow.recipe.draw.channel import Net, route
from kvflow.recipe.draw.layout import Cell, lay_out
from kvflow.recipe.draw.words import label, shares

Columns = tuple[int, int]
"""First and last column of something."""


def paint(graph: Graph, steps: Mapping[str, int] | None) -> list[str]:
    """The rows of the picture.

    Args:
        graph: every agent of it can be reached.
        steps: by agent, written beside the names.

    Raises:
        TangledError: two arrows could not be told apart.
    """
    # A column for each arrow that may leave on its own.
    texts = {
        name: f"[{label(agent, steps):^{len(graph.out(name))}}]"
        for name, agent in graph.agents.items()
    }
    drawn = _Picture(graph, {START: f"({START})"} | texts)
    drawn.draw_down()
    drawn.draw_back()
    drawn.write()
    return list(drawn.canvas.rows())


class _Picture:
    """Where everything stands: columns first, then rows; then the strokes.

    Attributes:
        rails: the column in which arrows back to an agent go up.
        aside: arrows back that leave their source beside it, not below.
        nets: the lines between each layer and the next; below the last one, those to rails only.
        y: the row of each layer.
    """

    def __init__(self, graph: Graph, texts: Mapping[str, str]) -> None:
        self.graph, self.texts, self.canvas = graph, texts, Canvas()
        self.layout = lay_out(graph, self._width)
        self.cells = {cell.agent: cell for cell in self.layout.centre if not cell.passes}
        self.rails = self._rails()
        self.aside = self._aside()
        self.nets: list[list[Net]] = []
        self.y = [0]
        for layer in range(len(self.layout.layers)):
            nets = self._nets(layer)
            rows = route(nets, self._under)
            self.nets.append(nets)
            self.y.append(self.y[layer] + rows + len(self._from_above(layer + 1)) + 2)

    def draw_down(self) -> None:
        for layer, nets in enumerate(self.nets):
            for net in nets:
                self._draw_net(net, self.y[layer])

    def draw_back(self) -> None:
        for target, sources in self.layout.back.items():
            rail, cell = self.rails[target], self.cells[target]
            rows = [self._enter(cell, rail)]
            for source in sources:
                at = self.cells[source]
                if (source, target) in self.aside:
                    rows.append(self.y[at.layer])
                    self.canvas.across(target, rows[-1], self._box(at)[1] + 1, rail)
                else:
                    net = next(net for net in self.nets[at.layer] if net.rail == target)
                    rows.append(self.y[at.layer] + 1 + (net.row or 0))
            self.canvas.down(target, rail, min(rows), max(rows))

    def write(self) -> None:
        for name, cell in self.cells.items():
            y, middle = self.y[cell.layer], self.layout.centre[cell]
            self.canvas.write(self._box(cell)[0], y, self.texts[name])
            if name != START:
                word = self._word(name)
                self.canvas.write(middle - 1 - len(word), y - 1, word)
                self.canvas.write(middle, y - 1, "▼")
                self.canvas.write(middle + 2, y - 1, self._share(name, back=False))

    def _draw_net(self, net: Net, top: int) -> None:
        line = net.rail or net
        for port in net.ports.values():
            self.canvas.down(line, port, top, top + 1 + (net.row or 0))
        if net.row is not None:
            self.canvas.across(line, top + 1 + net.row, *net.span)
        for cell in net.cells:
            bottom = self.y[cell.layer] - (not cell.passes)
            self.canvas.down(line, self.layout.centre[cell], top + 1 + (net.row or 0), bottom)

    def _enter(self, cell: Cell, rail: int) -> int:
        """Lead a rail into its agent, beside it if no agent stands there, else from above."""
        if self._is_last(cell):
            y, edge = self.y[cell.layer], self._box(cell)[1] + 1
            self.canvas.across(cell.agent, y, edge, rail)
            self.canvas.write(edge, y, "◄")
        else:
            row = self._from_above(cell.layer).index(cell.agent)
            y, middle = self.y[cell.layer] - 2 - row, self.layout.centre[cell]
            # It joins the line that comes down: the last bit belongs to that one's net.
            above = next(net for net in self.nets[cell.layer - 1] if cell in net.cells)
            self.canvas.across(above, y, middle, middle + 1)
            self.canvas.across(cell.agent, y, middle + 1, rail)
        if share := self._share(cell.agent, back=True):
            # Just before the first rail, where no line goes down.
            self.canvas.write(min(self.rails.values()) - len(share) - 3, y, f" {share} ")
        return y

    def _nets(self, layer: int) -> list[Net]:
        groups: dict[tuple[Cell, ...], list[Cell]] = {}
        for below in self.layout.layers[layer + 1 : layer + 2]:
            for cell in below:
                groups.setdefault(tuple(self.layout.sources[cell]), []).append(cell)
        nets = [
            Net(list(above), cells, [self.layout.centre[cell] for cell in cells])
            for above, cells in groups.items()
        ]
        for target, sources in self.layout.back.items():
            leaving = [self.cells[s] for s in sources if (s, target) not in self.aside]
            leaving = [cell for cell in leaving if cell.layer == layer]
            if leaving:
                nets.append(Net(leaving, [], [self.rails[target]], rail=target))
        return nets

    def _rails(self) -> dict[str, int]:
        """The shorter the way back, the nearer its rail."""
        right = max(at + self._width(cell) // 2 for cell, at in self.layout.centre.items())
        longest = max((len(self._share(name, back=True)) for name in self.layout.back), default=0)
        way = {
            target: max(self.cells[source].layer for source in sources) - self.cells[target].layer
            for target, sources in self.layout.back.items()
        }
        first = right + (longest + 6 if longest else 4)
        return {name: first + 3 * nth for nth, name in enumerate(sorted(way, key=way.__getitem__))}

    def _aside(self) -> set[tuple[str, str]]:
        """One arrow back from each agent that has room beside it, unless it shares a way."""
        first: dict[str, str] = {}
        for target in self.rails:
            cells = [self.cells[source] for source in self.layout.back[target]]
            for cell in cells:
                alone = sum(other.layer == cell.layer for other in cells) == 1
                if alone and self._is_last(cell) and cell.agent not in self.rails:
                    first.setdefault(cell.agent, target)
        return set(first.items())

    def _is_last(self, cell: Cell) -> bool:
        return [other for other in self.layout.layers[cell.layer] if not other.passes][-1] == cell

    def _from_above(self, layer: int) -> list[str]:
        """Agents of a layer that rails lead into from above."""
        cells = [self.cells[target] for target in self.rails]
        return [cell.agent for cell in cells if cell.layer == layer and not self._is_last(cell)]

    def _box(self, cell: Cell) -> Columns:
        text = self.texts[cell.agent]
        left = self.layout.centre[cell] - len(text) // 2
        return left, left + len(text) - 1

    def _under(self, cell: Cell) -> range:
        if cell.passes:
            return range(self.layout.centre[cell], self.layout.centre[cell] + 1)
        left, right = self._box(cell)
        return range(left + 1, right)

    def _width(self, cell: Cell) -> int:
        if cell.passes:
            return 1
        # Beside the arrow: `any` or `all` at its left, p at its right, a blank around each.
        beside = 0 if cell.agent == START else 4
        return max(len(self.texts[cell.agent]), 2 * beside + 3)

    def _word(self, name: str) -> str:
        trigger = Edge(START) if name == START else self.graph.agents[name].trigger
        if isinstance(trigger, Edge) or len(trigger.parts) == 1:
            return ""
        return "all" if isinstance(trigger, All) else "any"

    def _share(self, name: str, back: bool) -> str:
        """The p of all arrows that lead down (or back) to an agent, if it is one and the same."""
        below = set(self.layout.back.get(name, ()))
        sources = below if back else {START, *self.graph.agents} - below
        found = shares(self.graph.agents[name].trigger, sources)
        p = found.pop() if len(found) == 1 else None
        return "" if p is None else f"{p:.2g}"
