"""One run: the rules of its tokens, and what contradicts them (invariants 1, 4 to 6)."""

import pytest
from support.step_oracles import cycle, peer, sequence
from support.walks import choice, parallel, walk

from kvflow.graph import MAX_STEPS, START, Agent, All, Edge, Either, Graph
from kvflow.runs import Run

FAR = MAX_STEPS


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


def test_alternative_that_need_not_have_been_taken_leaves_the_other() -> None:
    """Either of two sources opened the branch; each may have chosen its own way instead."""
    either = Either((Edge("x", 0.5), Edge("y", 0.5)))
    agents = [Agent("x"), Agent("y"), Agent("branch", either), Agent("own", Edge("x", 0.5))]
    run = walk(Run(Graph(agents)), ["x", "y", "branch"])
    assert run.steps() == {"x": FAR, "y": FAR, "branch": FAR, "own": 1}
    assert run.arrive("own")


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


def test_unexpected_call_does_not_begin_the_next_round() -> None:
    graph = Graph([Agent("a"), Agent("b", Edge("a")), Agent("c", Edge("a"))], repeat=True)
    run = walk(Run(graph), ["a", "b"])
    run.arrive("c")
    run.arrive("b")
    assert run.unexpected == 1
    assert run.expects_next


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


def test_supervisor_with_workers_in_parallel_is_near_whichever_is_done() -> None:
    back = Either((Edge(START), Edge("w1"), Edge("w2")))
    graph = Graph([Agent("boss", back), Agent("w1", Edge("boss")), Agent("w2", Edge("boss"))])
    run = walk(Run(graph), ["boss", "w1"])
    assert run.steps() == {"boss": 1, "w1": 2, "w2": 1}
    walk(run, ["boss", "w2"])
    assert run.unexpected == 0
