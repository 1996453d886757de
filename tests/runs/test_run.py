"""One run: the rules of its tokens, and what contradicts them (invariants 1, 4 to 6)."""

from collections.abc import Iterable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.step_oracles import TokenGame, cycle, fixpoint, graphs, peer, sequence

from kvflow.graph import MAX_STEPS, START, Agent, All, Edge, Either, Graph
from kvflow.runs import Run

FAR = MAX_STEPS


def walk(run: Run, calls: Iterable[str]) -> Run:
    """Let calls come and go, one after the other."""
    for agent in calls:
        run.arrive(agent)
        run.finish(agent)
    return run


def parallel() -> Graph:
    """A join of two branches that start together, and a bystander of the first."""
    join = Agent("join", All((Edge("left"), Edge("right"))))
    return Graph([Agent("left"), Agent("right"), join, Agent("log", Edge("left"))])


def choice(rest: float = 0.0) -> Graph:
    """One of two agents after the first, or neither."""
    share = (1 - rest) / 2
    return Graph([Agent("ask"), Agent("yes", Edge("ask", share)), Agent("no", Edge("ask", share))])


def test_new_run_awaits_its_entry_agents() -> None:
    run = Run(sequence(3))
    assert list(run.steps().values()) == [1, 2, 3]
    assert (run.begun, run.expects_next, run.ended) == (False, True, False)


def test_arrive_agent_counts_as_zero_until_it_finishes() -> None:
    """Invariant 1."""
    run = Run(cycle(3))
    run.arrive("a0")
    assert run.steps() == {"a0": 0, "a1": 1, "a2": 2}
    run.finish("a0")
    assert run.steps() == {"a0": 3, "a1": 1, "a2": 2}


def test_finish_between_calls_steps_stay() -> None:
    run = walk(Run(sequence(4)), ["a0", "a1"])
    assert run.steps() == {"a0": FAR, "a1": FAR, "a2": 1, "a3": 2}


def test_barrier_waits_for_both_and_falls_when_one_is_done() -> None:
    """Invariant 4."""
    run = walk(Run(parallel()), ["left"])
    assert run.steps() == {"left": FAR, "right": 1, "join": 2, "log": 1}
    run.arrive("right")
    assert run.steps()["join"] == 1


def test_side_branch_that_has_started_is_not_near_again_while_its_sibling_waits() -> None:
    run = walk(Run(parallel()), ["left", "log"])
    assert run.steps() == {"left": FAR, "right": 1, "join": 2, "log": FAR}
    assert run.unexpected == 0


def test_alternative_taken_clears_the_other() -> None:
    """Invariant 6."""
    run = walk(Run(choice()), ["ask"])
    assert run.steps() == {"ask": FAR, "yes": 1, "no": 1}
    run.arrive("yes")
    assert run.steps() == {"ask": FAR, "yes": 0, "no": FAR}
    run.finish("yes")
    assert run.ended


def test_alternative_taken_leaves_unconditional_edges_of_the_same_source() -> None:
    agents = [*choice().agents.values(), Agent("log", Edge("ask"))]
    run = walk(Run(Graph(agents)), ["ask", "no"])
    assert run.steps() == {"ask": FAR, "yes": FAR, "no": FAR, "log": 1}


def test_peer_with_reviewer_in_flight_expects_both_ways_on() -> None:
    run = walk(Run(peer(repeat=True)), ["planner", "executor", "expresser"])
    run.arrive("reviewer")
    assert run.steps() == {"planner": 1, "executor": 2, "expresser": 1, "reviewer": 0}


def test_peer_sent_back_no_longer_expects_the_next_run() -> None:
    run = walk(Run(peer(repeat=True)), ["planner", "executor", "expresser", "reviewer"])
    assert run.expects_next
    run.arrive("expresser")
    assert not run.expects_next
    assert run.steps() == {"planner": 2, "executor": 3, "expresser": 0, "reviewer": 1}


def test_repeat_next_round_under_the_same_name_is_expected() -> None:
    run = walk(Run(sequence(3, repeat=True)), ["a0", "a1", "a2", "a0"])
    assert run.unexpected == 0
    assert run.steps() == {"a0": 3, "a1": 1, "a2": 2}


def test_repeat_next_round_opens_all_entries_at_once() -> None:
    join = Agent("join", All((Edge("left"), Edge("right"))))
    run = Run(Graph([Agent("left"), Agent("right"), join], repeat=True))
    walk(run, ["left", "right", "join", "right"])
    assert run.unexpected == 0
    assert run.steps() == {"left": 1, "right": 3, "join": 2}


def test_repeat_finished_run_leaves_one_expected_run() -> None:
    run = walk(Run(sequence(3, repeat=True)), ["a0", "a1", "a2"])
    assert run.steps() == {"a0": 1, "a1": 2, "a2": 3}
    assert run.expects_next
    assert not run.ended


def test_follow_finished_run_ends() -> None:
    run = walk(Run(sequence(3, repeat=True)), ["a0", "a1", "a2"])
    run.follow()
    assert run.ended


def test_follow_takes_the_rest_of_the_alternatives() -> None:
    run = walk(Run(peer(repeat=True)), ["planner", "executor", "expresser", "reviewer"])
    run.follow()
    assert run.ended
    assert set(run.steps().values()) == {FAR}


def test_follow_leaves_what_is_still_in_flight_without_a_next_run() -> None:
    graph = Graph([Agent("a"), Agent("b", Edge("a")), Agent("c", Edge("a"))], repeat=True)
    run = walk(Run(graph), ["a", "b"])
    run.arrive("c")
    run.follow()
    assert run.steps() == {"a": FAR, "b": FAR, "c": 0}
    run.finish("c")
    assert run.ended


def test_fan_out_keeps_steps_one_until_the_most_calls_were_seen() -> None:
    run = walk(Run(peer()), ["planner"])
    for _ in range(3):
        walk(run, ["executor"])
        assert run.steps()["executor"] == 1
    walk(run, ["executor"])
    assert run.steps()["executor"] == FAR
    assert run.unexpected == 0


def test_fan_out_ends_when_a_successor_starts() -> None:
    run = walk(Run(peer()), ["planner", "executor", "executor"])
    run.arrive("expresser")
    assert run.steps() == {"planner": FAR, "executor": FAR, "expresser": 0, "reviewer": 1}
    assert run.unexpected == 0


def test_fan_out_barrier_after_it_waits_for_all_in_flight() -> None:
    """Invariant 5."""
    run = walk(Run(peer()), ["planner"])
    for _ in range(3):
        run.arrive("executor")
    for _ in range(2):
        run.finish("executor")
    assert run.steps() == {"planner": FAR, "executor": 0, "expresser": 1, "reviewer": 2}
    assert not run.arrive("expresser")  # too early: one executor is still at work


def test_fan_out_barrier_shuts_when_another_call_arrives() -> None:
    run = walk(Run(peer()), ["planner", "executor"])
    run.arrive("executor")
    assert not run.arrive("expresser")


def test_fan_out_barrier_opens_only_after_the_least_number_of_calls() -> None:
    graph = Graph([Agent("a", fan_out=(2, 3)), Agent("b", Edge("a"))])
    run = walk(Run(graph), ["a"])
    assert run.steps() == {"a": 1, "b": 2}
    walk(run, ["a"])
    assert run.steps() == {"a": 1, "b": 1}


def test_fan_out_one_call_too_many_is_unexpected_and_waited_for() -> None:
    graph = Graph([Agent("a", fan_out=(1, 2)), Agent("b", Edge("a"))])
    run = Run(graph)
    assert [run.arrive("a") for _ in range(3)] == [True, True, False]
    run.finish("a")
    run.finish("a")
    assert not run.arrive("b")


def test_unexpected_call_starts_and_clears_other_tokens() -> None:
    run = walk(Run(sequence(5)), ["a0"])
    assert not run.arrive("a3")
    assert run.unexpected == 1
    assert run.steps() == {"a0": FAR, "a1": FAR, "a2": FAR, "a3": 0, "a4": 1}


def test_unexpected_call_while_others_are_in_flight_clears_nothing() -> None:
    run = Run(parallel())
    run.arrive("left")
    run.arrive("log")
    assert run.unexpected == 1
    assert run.steps() == {"left": 0, "right": 1, "join": 2, "log": 0}


def test_unexpected_call_ends_a_fan_out_that_nothing_is_in_flight_of() -> None:
    run = walk(Run(peer()), ["planner", "executor"])
    run.arrive("reviewer")
    assert run.steps() == {"planner": FAR, "executor": FAR, "expresser": 1, "reviewer": 0}


def test_arrive_unknown_agent_is_refused() -> None:
    with pytest.raises(ValueError, match="'nobody' is no agent"):
        Run(sequence(2)).arrive("nobody")


@pytest.mark.parametrize("event", [Run.finish, Run.abort])
def test_departure_without_a_call_in_flight_is_refused(event: object) -> None:
    assert callable(event)
    with pytest.raises(ValueError, match="no call of 'a0' is in flight"):
        event(Run(sequence(2)), "a0")


def test_abort_restores_alternatives_and_fan_outs() -> None:
    run = walk(Run(peer()), ["planner", "executor"])
    before = run.steps()
    run.arrive("expresser")
    run.abort("expresser")
    assert run.steps() == before
    assert run.arrive("executor")


def test_abort_after_something_else_started_awaits_the_agent_again() -> None:
    run = Run(parallel())
    run.arrive("left")
    run.arrive("right")
    run.abort("left")
    assert run.steps() == {"left": 1, "right": 0, "join": 2, "log": 2}
    assert run.arrive("left")


def test_abort_does_not_bring_back_a_choice_that_was_taken_meanwhile() -> None:
    run = walk(Run(choice()), ["ask"])
    run.arrive("yes")
    run.arrive("no")
    run.abort("yes")
    run.finish("no")
    assert run.steps() == {"ask": FAR, "yes": 1, "no": FAR}


def test_abort_of_one_in_a_fan_out_opens_the_barrier_for_the_rest() -> None:
    run = walk(Run(peer()), ["planner"])
    run.arrive("executor")
    run.arrive("executor")
    run.finish("executor")
    run.abort("executor")
    assert run.steps() == {"planner": FAR, "executor": 1, "expresser": 1, "reviewer": 2}


def test_abort_of_the_first_call_leaves_a_run_that_has_not_begun() -> None:
    run = Run(sequence(3))
    run.arrive("a0")
    run.abort("a0")
    assert (run.begun, run.steps()) == (False, Run(sequence(3)).steps())


def test_abort_of_two_overlapping_starts_undoes_both() -> None:
    run = walk(Run(sequence(3)), ["a0"])
    run.arrive("a1")
    run.arrive("a1")
    run.abort("a1")
    run.abort("a1")
    assert run.steps() == walk(Run(sequence(3)), ["a0"]).steps()


def test_at_without_anything_is_a_new_run() -> None:
    assert Run.at(peer()).steps() == Run(peer()).steps()


def test_at_done_in_order_equals_the_walk() -> None:
    graph, calls = peer(repeat=True), ["planner", "executor", "expresser", "reviewer"]
    for count in range(len(calls)):
        described = Run.at(graph, done=calls[:count], running=[calls[count]])
        walked = walk(Run(graph), calls[:count])
        walked.arrive(calls[count])
        assert described.steps() == walked.steps()


def test_at_running_agent_needs_no_predecessors_named() -> None:
    assert list(Run.at(sequence(5), running=["a2"]).steps().values()) == [FAR, FAR, 0, 1, 2]


def test_at_parallel_branches_done_do_not_clear_each_other() -> None:
    graph = Graph(
        [
            Agent("x"),
            Agent("a", Edge("x")),
            Agent("b", Edge("x")),
            Agent("join", All((Edge("a"), Edge("b")))),
        ]
    )
    assert Run.at(graph, done=["a", "b"]).steps()["join"] == 1


def test_at_running_entry_keeps_its_sibling_expected() -> None:
    assert Run.at(parallel(), running=["left"]).steps() == {
        "left": 0,
        "right": 1,
        "join": 2,
        "log": 1,
    }


def test_at_next_round_is_expected_in_the_same_run() -> None:
    run = Run.at(sequence(3, repeat=True), done=["a0", "a1", "a2"], running=["a0"])
    assert run.steps() == {"a0": 0, "a1": 1, "a2": 2}


def test_at_can_be_walked_on() -> None:
    run = Run.at(peer(), done=["planner"], running=["executor"])
    run.finish("executor")
    assert run.arrive("expresser")


@pytest.mark.parametrize("where", ["done", "running"])
def test_at_unknown_agent_is_refused(where: str) -> None:
    with pytest.raises(ValueError, match="'nobody' is no agent"):
        Run.at(peer(), **{where: ["nobody"]})


def test_supervisor_with_workers_in_parallel_is_near_whichever_is_done() -> None:
    back = Either((Edge(START), Edge("w1"), Edge("w2")))
    graph = Graph([Agent("boss", back), Agent("w1", Edge("boss")), Agent("w2", Edge("boss"))])
    run = walk(Run(graph), ["boss", "w1"])
    assert run.steps() == {"boss": 1, "w1": 2, "w2": 1}
    walk(run, ["boss", "w2"])
    assert run.unexpected == 0


class PlainRun:
    """The rules of a run as the design words them, without undoing; the oracle for `Run`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.game = TokenGame(graph, [(START, out.target) for out in graph.out(START)])
        self.flying: list[str] = []
        self.seen = dict.fromkeys(graph.agents, 0)  # calls since the agent's last start
        self.finished = dict.fromkeys(graph.agents, 0)
        self.open: set[str] = set()  # agents whose fan-out may go on

    def arrive(self, agent: str) -> bool:
        expected = True
        if agent in self.open:
            self.game.tokens -= self.game.arrows(agent)
        else:
            expected = self._start(agent)
        self.seen[agent] += 1
        if self.seen[agent] >= self.graph.agents[agent].fan_out[1]:
            self.open.discard(agent)
        self.flying.append(agent)
        return expected

    def _start(self, agent: str) -> bool:
        expected = self.game.is_ready(agent)
        if self.game.start(agent):
            self._end_those_before(START)
        self._end_those_before(agent)
        if not expected and not self.flying:
            self.game.tokens = set()
            self.open = set()
        self.open.add(agent)
        self.seen[agent] = self.finished[agent] = 0
        return expected

    def _end_those_before(self, target: str) -> None:
        self.open -= {name for name in self.open if (name, target) in self.game.arrows(name)}

    def finish(self, agent: str) -> None:
        self.flying.remove(agent)
        self.finished[agent] += 1
        enough = self.finished[agent] >= self.graph.agents[agent].fan_out[0]
        if agent not in self.flying and (enough or agent not in self.open):
            self.game.finish(agent)

    def steps(self) -> dict[str, int]:
        return fixpoint(self.graph, self.game.tokens, self.flying, self.open)


@settings(deadline=None, max_examples=150)
@given(st.data(), graphs())
def test_run_any_calls_in_any_order_equal_the_plain_rules(
    data: st.DataObject, graph: Graph
) -> None:
    run, plain = Run(graph), PlainRun(graph)
    for _ in range(data.draw(st.integers(1, 12))):
        if plain.flying and data.draw(st.booleans()):
            agent = data.draw(st.sampled_from(plain.flying))
            run.finish(agent)
            plain.finish(agent)
        else:
            agent = data.draw(st.sampled_from(plain.game.ready() or list(graph.agents)))
            if data.draw(st.integers(0, 3)) == 0:
                agent = data.draw(st.sampled_from(list(graph.agents)))
            assert run.arrive(agent) == plain.arrive(agent)
        assert run.steps() == plain.steps()


@st.composite
def histories(draw: st.DrawFn) -> tuple[Graph, list[tuple[str, str]]]:
    """A graph and a history of any arrivals, finishes and aborts."""
    graph = draw(graphs())
    events: list[tuple[str, str]] = []
    flying: list[str] = []
    for _ in range(draw(st.integers(0, 10))):
        kind = draw(st.sampled_from(["arrive", "finish", "abort"])) if flying else "arrive"
        agent = draw(st.sampled_from(list(graph.agents) if kind == "arrive" else flying))
        flying.append(agent) if kind == "arrive" else flying.remove(agent)
        events.append((kind, agent))
    return graph, events


def replay(graph: Graph, events: list[tuple[str, str]]) -> Run:
    run = Run(graph)
    for kind, agent in events:
        getattr(run, kind)(agent)
    return run


@settings(deadline=None, max_examples=150)
@given(st.data(), histories())
def test_abort_right_after_arrival_is_as_if_it_had_not_arrived(
    data: st.DataObject, history: tuple[Graph, list[tuple[str, str]]]
) -> None:
    graph, events = history
    agent = data.draw(st.sampled_from(list(graph.agents)))
    without = replay(graph, events)
    assume(agent not in without.in_flight)  # else it is not known which of its calls went
    arrived_and_gone = [("arrive", agent), ("abort", agent)]
    run = replay(graph, [*events, *arrived_and_gone])
    assert run.steps() == without.steps()
    assert (run.begun, run.ended) == (without.begun, without.ended)


@settings(deadline=None, max_examples=150)
@given(histories())
def test_run_any_history_keeps_zero_for_exactly_the_agents_in_flight(
    history: tuple[Graph, list[tuple[str, str]]],
) -> None:
    graph, events = history
    run = replay(graph, events)
    assert [n for n, steps in run.steps().items() if steps == 0] == [
        n for n in graph.agents if n in run.in_flight
    ]
    assert 0 <= run.unexpected <= sum(kind == "arrive" for kind, _ in events)
