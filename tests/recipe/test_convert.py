from typing import Any

import pytest

from kvflow.graph import START, Agent, All, Edge, Either, Trigger
from kvflow.recipe.convert import to_graph
from kvflow.recipe.model import Recipe


def agent(**spec: Any) -> Agent:
    agents = {"a": {"fixed_tokens": 8}, "b": {"fixed_tokens": 8, **spec}}
    recipe = Recipe.model_validate({"kvflow": 1, "name": "flow", "agents": agents})
    return to_graph(recipe).agents["b"]


@pytest.mark.parametrize(
    ("after", "trigger"),
    [
        (None, Edge(START)),
        ("a", Edge("a")),
        ({"agent": "a", "p": 0.5}, Edge("a", 0.5)),
        (["a", "start"], All((Edge("a"), Edge(START)))),
        ({"all": ["a"]}, All((Edge("a"),))),
        (
            {"any": [["a", "start"], {"agent": "b", "p": 1}]},
            Either((All((Edge("a"), Edge(START))), Edge("b", 1.0))),
        ),
    ],
)
def test_to_graph_after_becomes_the_trigger_it_means(after: Any, trigger: Trigger) -> None:
    assert agent(after=after).trigger == trigger


def test_to_graph_keeps_fan_out_and_order_and_repeat() -> None:
    names = ["z", "a", "m"]
    agents = {name: {"fixed_tokens": 8, "fan_out": "2..3"} for name in names}
    recipe = Recipe.model_validate({"kvflow": 1, "name": "flow", "agents": agents, "repeat": True})
    graph = to_graph(recipe)
    assert list(graph.agents) == names
    assert graph.agents["m"].fan_out == (2, 3)
    assert graph.repeat
