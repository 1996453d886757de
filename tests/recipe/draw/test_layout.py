from collections.abc import Mapping
from itertools import pairwise

from hypothesis import given
from support.calm import calm
from support.recipe_texts import recipes

from kvflow.graph import START, Agent, All, Edge, Either, Graph
from kvflow.recipe.convert import to_graph
from kvflow.recipe.draw.layout import Cell, Layout, arrows, lay_out
from kvflow.recipe.model import Recipe


def width(cell: Cell) -> int:
    return 1 if cell.passes else len(cell.agent) + 2


def depths(layout: Layout) -> Mapping[str, int]:
    return {cell.agent: cell.layer for cell in layout.centre if not cell.passes}


@calm
@given(recipes())
def test_arrows_each_lead_down_or_back_and_down_without_a_circle(recipe: Recipe) -> None:
    graph = to_graph(recipe)
    down, back = arrows(graph)
    listed = [(s, t) for found in (down, back) for t, sources in found.items() for s in sources]
    assert sorted(listed) == sorted(
        (name, out.target) for name in (START, *graph.agents) for out in graph.out(name)
    )
    above: set[str] = set()
    while layer := {name for name in down if name not in above and above.issuperset(down[name])}:
        above |= layer
    assert above == set(down)


@calm
@given(recipes())
def test_lay_out_agents_stand_below_their_sources_and_beside_each_other(recipe: Recipe) -> None:
    graph = to_graph(recipe)
    layout = lay_out(graph, width)
    depth = depths(layout)
    down, _ = arrows(graph)
    assert all(depth[s] < depth[t] for t, sources in down.items() for s in sources)
    assert depth.keys() == {START, *graph.agents}
    for row in layout.layers:
        for left, right in pairwise(row):
            apart = layout.centre[right] - layout.centre[left]
            assert apart > width(left) // 2 + width(right) // 2
    assert min(layout.centre[cell] - width(cell) // 2 for cell in layout.centre) == 0


@calm
@given(recipes())
def test_lay_out_cells_have_their_sources_one_layer_above(recipe: Recipe) -> None:
    layout = lay_out(to_graph(recipe), width)
    for layer, row in enumerate(layout.layers):
        for cell in row:
            assert cell.layer == layer
            assert all(source in layout.layers[layer - 1] for source in layout.sources[cell])
            assert bool(layout.sources[cell]) == (layer > 0)


def test_lay_out_sequence_stands_in_one_column() -> None:
    chain = Graph([Agent("a"), Agent("bbbb", Edge("a")), Agent("cc", Edge("bbbb"))])
    assert len(set(lay_out(chain, width).centre.values())) == 1


def test_lay_out_fork_stands_evenly_below_its_source() -> None:
    fork = Graph([Agent("a"), *(Agent(name, Edge("a")) for name in ("bb", "cc", "dd"))])
    centre = {cell.agent: at for cell, at in lay_out(fork, width).centre.items()}
    assert centre["cc"] == centre["a"]
    assert centre["cc"] - centre["bb"] == centre["dd"] - centre["cc"]


def test_arrows_send_back_leads_back_and_optional_step_leads_down() -> None:
    graph = Graph(
        [
            Agent("write", Either((Edge(START), Edge("review", 0.3)))),
            Agent("polish", Edge("write", 0.5)),
            Agent("review", Either((Edge("write", 0.5), Edge("polish")))),
        ]
    )
    assert arrows(graph).back == {"write": ["review"]}
    assert depths(lay_out(graph, width))["review"] == 3


def test_arrows_to_an_agent_itself_lead_back() -> None:
    graph = Graph([Agent("a", Either((Edge(START), Edge("a", 0.5))))])
    assert arrows(graph).back == {"a": ["a"]}


def test_lay_out_long_arrow_passes_by_every_layer_between() -> None:
    graph = Graph(
        [Agent("a"), Agent("b", Edge("a")), Agent("c", All((Edge("a"), Edge("b"), Edge(START))))]
    )
    passing = [cell for cell in lay_out(graph, width).centre if cell.passes]
    assert sorted(passing) == [Cell(1, START, "c"), Cell(2, "a", "c"), Cell(2, START, "c")]
