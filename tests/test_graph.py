"""Steps-to-execution: the examples of the design, invariants 1 to 4, and two oracles."""

from collections.abc import Collection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.step_oracles import TokenGame, cycle, fixpoint, graphs, moments, peer, sequence

from kvflow.graph import (
    MAX_NESTING,
    MAX_STEPS,
    START,
    Agent,
    All,
    Arrow,
    Edge,
    Either,
    Graph,
    Out,
    Trigger,
)


def test_steps_sequence_with_a0_running_counts_up() -> None:
    """Invariant 1, first half."""
    assert list(sequence(10).steps([], ["a0"]).values()) == list(range(10))


@pytest.mark.parametrize("length", [1, 2, 5, 10])
@pytest.mark.parametrize("i", [0, 3])
def test_steps_cycle_with_ai_running_is_distance_modulo_length(length: int, i: int) -> None:
    """Invariant 1, second half."""
    i %= length
    found = cycle(length).steps([], [f"a{i}"])
    assert found == {f"a{j}": (j - i) % length for j in range(length)}


@pytest.mark.parametrize("length", [1, 2, 5, 10])
def test_steps_cycle_after_a0_finished_is_length_for_a0(length: int) -> None:
    """Invariant 1: N for the agent itself; invariant 3: a self-loop gives 1."""
    graph = cycle(length)
    assert graph.steps(graph.arrows("a0"), [])["a0"] == length


def test_steps_repeating_sequence_after_a0_finished_is_ten_for_a0() -> None:
    assert sequence(10, repeat=True).steps([("a0", "a1")], [])["a0"] == 10


def test_steps_between_two_calls_stay_as_they_were() -> None:
    graph = sequence(4)
    before, after = graph.steps([], ["a1"]), graph.steps([("a1", "a2")], [])
    assert (after["a2"], after["a3"]) == (before["a2"], before["a3"]) == (1, 2)


def test_steps_any_of_barrier_and_branch_with_barrier_in_flight_is_one() -> None:
    either = Either((All((Edge("a"), Edge("b"))), Edge("c")))
    graph = Graph([Agent("a"), Agent("b"), Agent("c"), Agent("v", either)])
    assert graph.steps([], ["a", "b"])["v"] == 1


def test_steps_barrier_with_one_branch_done_and_other_three_away_is_four() -> None:
    """Invariant 4."""
    agents = [*sequence(4).agents.values(), Agent("b")]
    graph = Graph([*agents, Agent("v", All((Edge("a3"), Edge("b"))))])
    found = graph.steps([("b", "v")], ["a0"])
    assert (found["a3"], found["v"]) == (3, 4)


def test_steps_barrier_falls_as_its_branches_finish() -> None:
    """Invariant 4."""
    graph = Graph([Agent("a"), Agent("b", Edge("a")), Agent("v", All((Edge("a"), Edge("b"))))])
    moments = [([], ["a"]), ([("a", "b"), ("a", "v")], []), ([("a", "v")], ["b"])]
    assert [graph.steps(*moment)["v"] for moment in moments] == [2, 2, 1]


def test_steps_side_branch_already_started_is_not_near_while_sibling_waits() -> None:
    graph = Graph([Agent("a"), Agent("log", Edge("a")), Agent("b", Edge("a"))])
    assert graph.steps([("a", "b")], []) == {"a": MAX_STEPS, "log": MAX_STEPS, "b": 1}


def test_steps_peer_with_reviewer_in_flight_expects_sending_back_and_next_run() -> None:
    assert peer(repeat=True).steps([], ["reviewer"]) == {
        "planner": 1,
        "executor": 2,
        "expresser": 1,
        "reviewer": 0,
    }


def test_steps_peer_without_repeat_never_expects_planner_again() -> None:
    assert peer().steps([], ["reviewer"])["planner"] == MAX_STEPS


def test_steps_out_of_reach_is_clipped() -> None:
    """Invariant 3."""
    found = sequence(80).steps([], ["a1"])
    assert (found["a0"], found["a64"], found["a65"], found["a79"]) == (64, 63, 64, 64)


def test_steps_due_agent_is_at_most_one() -> None:
    assert peer().steps([], [], ["executor"]) == {
        "planner": MAX_STEPS,
        "executor": 1,
        "expresser": 2,
        "reviewer": 3,
    }


def test_steps_supervisor_after_start_or_any_worker_is_one_while_a_worker_runs() -> None:
    back = Either((Edge(START), Edge("w1"), Edge("w2")))
    workers = [Agent(name, Edge("boss", 0.4)) for name in ("w1", "w2")]
    graph = Graph([Agent("boss", back), *workers])
    assert graph.steps([], ["w1"]) == {"boss": 1, "w1": 0, "w2": 2}


def test_steps_same_source_twice_in_barrier_counts_once() -> None:
    graph = Graph([Agent("a"), Agent("v", All((Edge("a"), Edge("a"))))])
    assert graph.steps([], ["a"])["v"] == 1


def test_steps_duplicate_and_foreign_tokens_change_nothing() -> None:
    graph = Graph([Agent("a"), Agent("b"), Agent("v", All((Edge("a"), Edge("b"))))])
    assert graph.steps([("a", "v"), ("a", "v"), ("x", "y")], [])["v"] == MAX_STEPS


@settings(deadline=None, max_examples=150)
@given(st.data(), graphs())
def test_steps_any_moment_of_any_graph_equals_fixpoint_by_iteration(
    data: st.DataObject, graph: Graph
) -> None:
    """Invariants 2 and 3."""
    moment = data.draw(moments(graph))
    assert graph.steps(*moment) == fixpoint(graph, *moment)


@settings(deadline=None, max_examples=100)
@given(st.data(), graphs(alternatives=False))
def test_steps_without_alternatives_are_the_round_in_which_an_agent_starts(
    data: st.DataObject, graph: Graph
) -> None:
    """Everything that can start does, in parallel: a barrier then waits for its last branch."""
    tokens, in_flight, due = data.draw(moments(graph))
    game = TokenGame(graph, tokens)
    first = dict.fromkeys(in_flight, 0)
    running = in_flight
    for number in range(1, 2 * len(graph.agents) + 1):
        for name in running:
            game.finish(name)
        running = {*game.ready(), *(due if number == 1 else ())}
        for name in running:
            game.start(name)
            first.setdefault(name, number)
    found = graph.steps(tokens, in_flight, due)
    assert found == {name: first.get(name, MAX_STEPS) for name in graph.agents}


@settings(deadline=None, max_examples=100)
@given(st.data(), graphs(barriers=False))
def test_steps_without_barriers_are_the_fewest_calls_until_an_agent_starts(
    data: st.DataObject, graph: Graph
) -> None:
    """One call after the other, every choice of alternatives searched, nearest states first."""
    tokens, in_flight, _ = data.draw(moments(graph))
    found = graph.steps(tokens, in_flight)
    assert found == _fewest_calls(graph, tokens, in_flight)


def _fewest_calls(
    graph: Graph, tokens: Collection[Arrow], in_flight: Collection[str]
) -> dict[str, int]:
    game = TokenGame(graph, tokens)
    for name in in_flight:
        game.finish(name)
    first = dict.fromkeys(graph.agents, MAX_STEPS) | dict.fromkeys(in_flight, 0)
    seen, states = {frozenset(game.tokens)}, [frozenset(game.tokens)]
    for calls in range(1, len(graph.agents) + 1):
        following = []
        for state in states:
            for name in TokenGame(graph, state).ready():
                first[name] = min(first[name], calls)
                after = TokenGame(graph, state)
                after.start(name)
                after.finish(name)
                if frozenset(after.tokens) not in seen:
                    seen.add(frozenset(after.tokens))
                    following.append(frozenset(after.tokens))
        states = following
    return first


@settings(deadline=None, max_examples=100)
@given(st.data(), graphs())
def test_steps_of_any_graph_are_never_later_than_a_play(data: st.DataObject, graph: Graph) -> None:
    """Barriers over alternatives may never open; steps still say the earliest that could be."""
    tokens, in_flight, due = data.draw(moments(graph))
    found = graph.steps(tokens, in_flight, due)
    game, running = TokenGame(graph, tokens), sorted(in_flight)
    for number in range(1, len(graph.agents) + 1):
        for name in running:
            game.finish(name)
        running = []
        for name in data.draw(st.permutations([*game.ready(), *(due if number == 1 else ())])):
            if game.is_ready(name) or (number == 1 and name in due):
                game.start(name)
                running.append(name)
                assert found[name] <= number


def test_out_lists_targets_in_declaration_order_with_their_shares() -> None:
    graph = Graph([Agent("z", Edge("m", 0.25)), Agent("m"), Agent("b", Edge("m"))])
    assert graph.out("m") == (Out("z", 0.25), Out("b", None))
    assert graph.out(START) == (Out("m", None),)


@pytest.mark.parametrize(
    ("shares", "terminal"),
    [((), True), ((None,), False), ((0.3,), True), ((0.5, 0.5), False), ((0.3, None), True)],
)
def test_is_terminal_by_shares_out_of_an_agent(
    shares: tuple[float | None, ...], terminal: bool
) -> None:
    targets = [Agent(f"t{i}", Edge("a", p)) for i, p in enumerate(shares)]
    assert Graph([Agent("a"), *targets]).is_terminal("a") is terminal


def test_is_terminal_ten_tenths_are_a_whole() -> None:
    assert not Graph(
        [Agent("a"), *(Agent(f"t{i}", Edge("a", 0.1)) for i in range(10))]
    ).is_terminal("a")


def test_once_of_a_repeating_graph_does_not_repeat() -> None:
    graph = sequence(3, repeat=True)
    assert graph.arrows("a2") == (("a2", START),)
    assert graph.once.arrows("a2") == ()


def test_once_of_a_graph_without_repeat_is_itself() -> None:
    graph = sequence(3)
    assert graph.once is graph


def _nested(depth: int) -> Trigger:
    trigger: Trigger = Edge(START)
    for _ in range(depth):
        trigger = Either((trigger,))
    return trigger


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ([Agent("a"), Agent("a")], "two agents have the name 'a'"),
        ([Agent(START)], "reserved name 'start'"),
        ([Agent("a", Edge("b"))], "'a' is after 'b', which is no agent"),
        ([Agent("a", All(()))], "without parts"),
        ([Agent("a", Either((Edge(START), Either(()))))], "without parts"),
        ([Agent("a", Either((Edge(START, 0.5), Edge(START))))], "two different p"),
        ([Agent("a", _nested(MAX_NESTING + 1))], "nested deeper"),
        ([Agent("a", _nested(100_000))], "nested deeper"),
    ],
)
def test_graph_of_contradicting_agents_is_refused(agents: list[Agent], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Graph(agents)


def test_graph_deepest_allowed_nesting_is_accepted() -> None:
    assert Graph([Agent("a", _nested(MAX_NESTING))]).steps([], []) == {"a": MAX_STEPS}
