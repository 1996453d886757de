import re

import pytest
from hypothesis import given
from support.calm import calm
from support.recipe_texts import recipes
from support.trace_picture import Traced

from kvflow.graph import START, Agent, All, Edge, Either, Graph
from kvflow.recipe.convert import to_graph
from kvflow.recipe.draw import layout
from kvflow.recipe.draw.canvas import TangledError
from kvflow.recipe.draw.picture import paint
from kvflow.recipe.load import catalogue, load
from kvflow.recipe.model import Recipe

HUB = Graph(
    [
        Agent("hub", Either((Edge(START), Edge("x"), Edge("y"), Edge("z")))),
        Agent("x", Edge("hub", 0.2)),
        Agent("y", Edge("hub", 0.3)),
        Agent("z", Edge("hub", 0.3)),
    ]
)
SKIPS = Graph(
    [
        Agent("plan"),
        Agent("s1", Edge("plan")),
        Agent("s2", Edge("plan")),
        Agent("write", All((Edge("s1"), Edge("s2"), Edge("plan")))),
        Agent("check", Edge("write")),
        Agent("fix", Either((Edge("check", 0.2), Edge("write", 0.1)))),
        Agent("out", All((Edge("check"), Either((Edge("fix"), Edge("s1")))))),
    ]
)
LOOPS = Graph(
    [
        Agent("a"),
        Agent("b", Either((Edge("a"), Edge("b", 0.5)))),
        Agent("c", Either((Edge("b", 0.2), Edge("d", 0.1)))),
        Agent("d", Either((Edge("c"), Edge("e", 0.5), Edge("d", 0.2)))),
        Agent("e", Edge("d")),
    ]
)
BESIDE = Graph(
    [
        Agent("left", Either((Edge(START), Edge("join", 0.3)))),
        Agent("right"),
        Agent("join", All((Edge("left"), Edge("right")))),
    ]
)
SHIPPED = [load(path).graph for path in catalogue()]


def drawn(graph: Graph) -> list[str]:
    return paint(graph, None)


def arrows(graph: Graph) -> dict[str, set[str]]:
    return {name: {out.target for out in graph.out(name)} for name in (START, *graph.agents)}


def traced(graph: Graph, rows: list[str]) -> dict[str, set[str]]:
    picture = Traced(rows, rails=len(layout.arrows(graph).back))
    return {name: picture.targets(name) for name in picture.boxes}


@pytest.mark.parametrize("graph", [HUB, SKIPS, LOOPS, BESIDE, *SHIPPED])
def test_paint_lines_lead_exactly_where_arrows_do(graph: Graph) -> None:
    assert traced(graph, drawn(graph)) == arrows(graph)


@calm
@given(recipes())
def test_paint_any_workflow_leads_where_its_arrows_do_or_gives_up(recipe: Recipe) -> None:
    graph = to_graph(recipe)
    try:
        rows = drawn(graph)
    except TangledError:
        return
    assert traced(graph, rows) == arrows(graph)


def test_paint_steps_stand_in_the_boxes() -> None:
    rows = paint(HUB, {"hub": 0, "x": 1, "y": 2, "z": 64})
    assert "[hub: running]" in rows[2]
    assert all(text in rows[5] for text in ("[x: 1 step]", "[y: 2 steps]", "[z: out of sight]"))


def test_paint_barrier_and_branch_are_told_apart() -> None:
    text = "\n".join(drawn(SKIPS))
    assert re.search(r"all ▼\n *│? *\[write\]", text)
    assert re.search(r"any ▼.*\n.*\[fix\]", text)


def test_paint_share_stands_at_the_arrow_that_it_concerns() -> None:
    rows = drawn(HUB)
    assert [share.strip() for share in re.findall(r"▼ ([\d.]+)", "\n".join(rows))] == [
        "0.2",
        "0.3",
        "0.3",
    ]


def test_paint_share_of_an_arrow_back_stands_on_its_line() -> None:
    assert any("─ 0.3 ─" in row for row in drawn(BESIDE))
