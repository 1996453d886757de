from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm
from support.recipe_texts import recipes

from kvflow.graph import START, Agent, Edge, Either, Graph
from kvflow.recipe.convert import to_graph
from kvflow.recipe.draw import draw
from kvflow.recipe.model import Recipe

PEER = Graph(
    [
        Agent("planner"),
        Agent("executor", Edge("planner"), (1, 4)),
        Agent("expresser", Either((Edge("executor"), Edge("reviewer", 0.3)))),
        Agent("reviewer", Edge("expresser")),
    ],
    repeat=True,
)


def test_draw_peer_looks_like_this() -> None:
    assert draw(PEER).splitlines() == [
        "     (start)",
        "        ▼",
        "    [planner]",
        "        ▼",
        "[executor x1..4]",
        "    any ▼",
        "   [expresser]◄──── 0.3 ─┐",
        "        ▼                │",
        "   [reviewer]────────────┘",
        "",
        "back  reviewer → expresser (0.3)",
        "ends  after reviewer (0.7), then the next run starts",
    ]


def test_draw_too_wide_for_the_terminal_is_listed() -> None:
    graph = Graph([Agent(f"agent-number-{n}") for n in range(9)])
    lines = draw(graph, width=80).splitlines()
    assert lines[0] == "agent-number-0  after start"
    assert "(start)" in draw(graph, width=200)


def test_draw_ascii_only_is_ascii() -> None:
    assert draw(PEER, ascii_only=True).isascii()


def test_draw_hub_returns_on_one_rail() -> None:
    workers = ["x", "y", "z"]
    hub = Agent("hub", Either((Edge(START), *map(Edge, workers))))
    graph = Graph([hub, *(Agent(name, Edge("hub", 0.25)) for name in workers)])
    assert draw(graph).splitlines()[:7] == [
        "                (start)",
        "               any ▼",
        "                 [hub]◄───────────────────┐",
        "     ┌─────────────┼─────────────┐        │",
        "     ▼ 0.25        ▼ 0.25        ▼ 0.25   │",
        "    [x]           [y]           [z]       │",
        "     └─────────────┴─────────────┴────────┘",
    ]


@calm
@given(recipes(), st.integers(20, 120), st.booleans())
def test_draw_any_workflow_names_every_agent_and_keeps_to_the_width(
    recipe: Recipe, width: int, ascii_only: bool
) -> None:
    graph = to_graph(recipe)
    text = draw(graph, dict.fromkeys(graph.agents, 3), width=width, ascii_only=ascii_only)
    assert all(f"{name}" in text for name in graph.agents)
    if "(start)" in text:
        assert max(map(len, text.splitlines())) <= width
