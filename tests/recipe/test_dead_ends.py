"""Held to an exhaustive play of the token game."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from support.calm import calm
from support.step_oracles import graphs

from kvflow.graph import MAX_STEPS, START, Agent, All, Arrow, Edge, Either, Graph
from kvflow.recipe.dead_ends import endless, never_start

Tokens = frozenset[Arrow]


def outcomes(graph: Graph, name: str) -> Iterator[Tokens]:
    """The tokens that a finished call may put: all that is always taken, and one alternative."""
    outs = graph.out(name)
    always = frozenset((name, out.target) for out in outs if out.p is None)
    choices = [out.target for out in outs if out.p is not None]
    for choice in choices:
        yield always | {(name, choice)}
    if not choices or sum(out.p or 0 for out in outs) < 1 - 1e-9:
        yield always


def played(graph: Graph) -> set[str]:
    """The agents that start in at least one of all possible runs."""
    started: set[str] = set()
    seen: set[Tokens] = set()
    fresh = list(outcomes(graph, START))
    while fresh:
        tokens = fresh.pop()
        if tokens in seen:
            continue
        seen.add(tokens)
        for name in graph.agents:
            if graph.is_ready(name, tokens):
                started.add(name)
                left = frozenset(arrow for arrow in tokens if arrow[1] != name)
                fresh += [left | put for put in outcomes(graph, name)]
    return started


def reached(graph: Graph, name: str, on_the_way: tuple[str, ...] = ()) -> set[str]:
    """Everything that arrows lead to from an agent, itself included, by walking all paths."""
    ahead = [out.target for out in graph.out(name) if out.target not in on_the_way]
    return {name}.union(*(reached(graph, later, (*on_the_way, name)) for later in ahead))


def refused(graph: Graph) -> set[str]:
    return {str(finding.at[1]) for finding in never_start(graph)}


def asks(*agents: Agent, repeat: bool = False) -> Graph:
    return Graph(agents, repeat)


@calm
@given(graphs(fan_outs=False))
def test_never_start_refuses_nothing_that_some_run_starts(graph: Graph) -> None:
    assert refused(graph).isdisjoint(played(graph))


@calm
@given(graphs(alternatives=False, fan_outs=False))
def test_never_start_without_alternatives_misses_nothing(graph: Graph) -> None:
    assert bool(refused(graph)) == (played(graph) != set(graph.agents))


@calm
@given(graphs(fan_outs=False))
def test_never_start_names_every_agent_that_no_arrow_path_can_satisfy(graph: Graph) -> None:
    told = " ".join(finding.message for finding in never_start(graph))
    steps = graph.steps(graph.arrows(START), ())
    assert all(repr(name) in told for name in steps if steps[name] == MAX_STEPS)


@pytest.mark.parametrize(
    ("graph", "messages"),
    [
        (
            asks(Agent("a", All((Edge(START), Edge("a"))))),
            ["'a' can never start: it waits for itself"],
        ),
        (
            asks(Agent("a"), Agent("b", All((Edge("a"), Edge("c")))), Agent("c", Edge("b"))),
            ["'b' can never start: it waits for 'c', which waits for 'b'"],
        ),
        (
            asks(Agent("a", Edge("b")), Agent("b", Edge("a")), Agent("c", Edge("b"))),
            [
                "'a' can never start: it waits for 'b', which waits for 'a'",
                "'c' can never start: it waits for 'b', which can never start",
            ],
        ),
        (
            asks(
                Agent("a"),
                Agent("x", Edge("a", 0.5)),
                Agent("y", Edge("a", 0.5)),
                Agent("z", All((Edge("x"), Edge("y")))),
            ),
            [
                "'z' can never start: it needs both 'x' and 'y', two alternatives of 'a', of which "
                "only one is ever taken"
            ],
        ),
    ],
)
def test_never_start_says_why(graph: Graph, messages: list[str]) -> None:
    assert [finding.message for finding in never_start(graph)] == messages


def test_never_start_alternatives_of_an_agent_that_comes_round_may_both_be_taken() -> None:
    graph = asks(
        Agent("a", Either((Edge(START), Edge("x"), Edge("y")))),
        Agent("x", Edge("a", 0.5)),
        Agent("y", Edge("a", 0.5)),
        Agent("z", All((Edge("x"), Edge("y")))),
    )
    assert "z" in played(graph)
    assert list(never_start(graph)) == []


def test_never_start_one_good_way_among_impossible_ones_is_enough() -> None:
    both = All((Edge("x"), Edge("y")))
    graph = asks(
        Agent("a"),
        Agent("x", Edge("a", 0.5)),
        Agent("y", Edge("a", 0.5)),
        Agent("z", Either((both, Edge("x")))),
    )
    assert list(never_start(graph)) == []


@calm
@given(graphs())
def test_endless_names_the_first_agent_without_a_way_to_an_end(graph: Graph) -> None:
    lost = [
        name
        for name in graph.agents
        if not any(graph.is_terminal(later) for later in reached(graph, name))
    ]
    expected = [] if graph.repeat else [("agents", name) for name in lost[:1]]
    assert [finding.at for finding in endless(graph)] == expected


def test_endless_says_what_to_do() -> None:
    graph = asks(Agent("a", Either((Edge(START), Edge("b")))), Agent("b", Edge("a")))
    (finding,) = endless(graph)
    assert finding.message.startswith("a run that reaches 'a' can never end: ")
