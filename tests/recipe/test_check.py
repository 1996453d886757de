from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm
from support.recipe_texts import recipes

from kvflow.graph import MAX_NESTING, MAX_STEPS, START
from kvflow.recipe.check import MAX_EDGES, check
from kvflow.recipe.convert import to_graph
from kvflow.recipe.model import Recipe
from kvflow.recipe.problem import Finding


def recipe(repeat: bool = False, **after: Any) -> Recipe:
    agents = {name: {"fixed_tokens": 8, "after": what} for name, what in after.items()}
    return Recipe.model_validate({"kvflow": 1, "name": "flow", "agents": agents, "repeat": repeat})


def p(agent: str, share: float) -> dict[str, Any]:
    return {"agent": agent, "p": share}


def only(what: Recipe) -> Finding:
    (finding,) = check(what)
    return finding


@pytest.mark.parametrize(
    "good",
    [
        recipe(a=None),
        recipe(a=None, b="a", c=["a", "b"]),
        recipe(a={"any": [START, "b"]}, b=p("a", 0.9)),
        recipe(repeat=True, a={"any": [START, "b"]}, b="a"),
        recipe(a=p(START, 0.5), b=p(START, 0.5)),
        recipe(a=None, b=p("a", 0.2), c=p("a", 0.3), d="a", e="a"),
        recipe(a=None, **{f"b{n}": p("a", 0.1) for n in range(10)}),
        recipe(a=None, b={"any": [{"all": [START, "a"]}, {"all": ["a", "c"]}]}, c="a"),
    ],
)
def test_check_sound_workflow_finds_nothing(good: Recipe) -> None:
    assert check(good) == []


def test_check_unknown_agent_near_a_known_one_is_suggested() -> None:
    assert only(recipe(planner=None, b={"any": ["planer", "planner"]})) == Finding(
        ("agents", "b", "after", "any", 0), "unknown agent 'planer' (did you mean 'planner'?)"
    )


def test_check_unknown_agent_far_from_all_lists_agents() -> None:
    finding = only(recipe(a=None, b=p("zzz", 0.5)))
    assert finding.at == ("agents", "b", "after", "agent")
    assert finding.message == "unknown agent 'zzz' (agents: a, b)"


def test_check_shares_over_one_are_refused_at_the_last_of_them() -> None:
    finding = only(recipe(a=None, b=p("a", 0.7), c=p("a", 0.6), d="b"))
    assert finding.at == ("agents", "c", "after", "p")
    assert finding.message.startswith("the alternatives out of 'a' sum to 1.3 (b 0.7, c 0.6): ")


def test_check_shares_out_of_start_that_leave_a_rest_are_refused() -> None:
    assert "end before they began" in only(recipe(a=p(START, 0.5), b=p(START, 0.4))).message


@calm
@given(st.lists(st.integers(1, 100), min_size=1, max_size=6))
def test_check_shares_are_refused_exactly_if_they_sum_to_more_than_one(percent: list[int]) -> None:
    shares = {f"b{n}": p("a", share / 100) for n, share in enumerate(percent)}
    refused = any("sum to" in finding.message for finding in check(recipe(a=None, **shares)))
    assert refused == (sum(percent) > 100)


@pytest.mark.parametrize(
    ("after", "at", "message"),
    [
        (["a", "a"], ("all", 1), "'a' is named twice in one all"),
        ({"any": ["a", START, "a"]}, ("any", 2), "'a' is named twice in one any"),
        ({"any": [p("a", 0.1)] * 2}, ("any", 1), "'a' is named twice in one any"),
        (
            [p("a", 0.1), p("a", 0.2)],
            ("all", 1),
            "all over two alternatives of 'a': only one of them is ever taken",
        ),
        (
            {"any": ["a", p("a", 0.2)]},
            ("any", 1, "agent"),
            "'a' is named without p and with p 0.2: an edge is either always taken or an "
            "alternative with one p",
        ),
        (
            {"any": [p("a", 0.1), {"all": [p("a", 0.2), START]}]},
            ("any", 1, "all", 0, "agent"),
            "'a' is named with p 0.1 and with p 0.2: an edge is either always taken or an "
            "alternative with one p",
        ),
    ],
)
def test_check_source_named_twice_is_refused(
    after: Any, at: tuple[str | int, ...], message: str
) -> None:
    assert only(recipe(a=None, b=after)) == Finding(("agents", "b", "after", *at), message)


def nested(depth: int) -> Any:
    after: Any = "a"
    for _ in range(depth):
        after = {"any": [after]}
    return after


def test_check_nesting_stops_where_the_graph_does() -> None:
    assert check(recipe(a=None, b=nested(MAX_NESTING))) == []
    assert only(recipe(a=None, b=nested(MAX_NESTING + 1))).message == "nested deeper than 32"


def test_check_refuses_the_edge_that_is_one_too_many() -> None:
    sources = [f"a{n}" for n in range(64)]
    most: dict[str, Any] = {f"b{n}": sources for n in range(MAX_EDGES // 64)}
    agents: dict[str, Any] = dict.fromkeys(sources)
    assert check(recipe(**agents, **most)) == []
    assert only(recipe(**agents, **most, c=["a0", "a1"])) == Finding(
        ("agents", "c", "after", "all", 0), "more than 4,096 edges in one recipe"
    )


def test_check_tells_all_it_can_at_once() -> None:
    many = recipe(a=None, b="x", c="y", d=["a", "a"])
    assert [finding.at[1] for finding in check(many)] == ["b", "c", "d"]


@calm
@given(recipes())
def test_check_that_finds_nothing_leaves_a_graph_that_can_be_built(sound: Recipe) -> None:
    graph = to_graph(sound)
    assert MAX_STEPS not in graph.steps(graph.arrows(START), ()).values()
