"""Calls that go away without an answer."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.run_table import contents
from support.step_oracles import peer, sequence
from support.walks import choice, parallel, walk

from kvflow.graph import MAX_STEPS, START, Agent, All, Edge, Either, Graph
from kvflow.runs import Run

FAR = MAX_STEPS


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


def test_abort_of_the_last_in_a_fan_out_awaits_one_more() -> None:
    run = Run(Graph([Agent("a", fan_out=(1, 2)), Agent("b", Edge("a"))]))
    run.arrive("a")
    run.arrive("a")
    run.finish("a")
    run.abort("a")
    assert run.steps() == {"a": 1, "b": 1}


def test_abort_leaves_a_fan_out_over_that_another_successor_ended() -> None:
    graph = Graph([Agent("a", fan_out=(1, 3)), Agent("b", Edge("a")), Agent("c", Edge("a"))])
    run = walk(Run(graph), ["a", "b"])
    run.arrive("c")
    run.abort("c")
    assert run.steps() == {"a": FAR, "b": FAR, "c": 1}


def test_abort_leaves_a_fan_out_over_whose_successor_started_since() -> None:
    graph = Graph([Agent("a", fan_out=(1, 3)), Agent("b", Edge("a")), Agent("c", Edge("a"))])
    run = walk(Run(graph), ["a"])
    run.arrive("c")
    run.arrive("b")
    run.abort("c")
    assert run.steps() == {"a": FAR, "b": 0, "c": 1}


def test_abort_of_a_whole_fan_out_keeps_the_tokens_of_the_one_before() -> None:
    entry = Agent("a", Either((Edge(START), Edge("b"))), (1, 2))
    run = walk(Run(Graph([entry, Agent("b", Edge("a")), Agent("v", Edge("a"))])), ["a", "b"])
    for event in (run.arrive, run.arrive, run.abort, run.abort):
        event("a")
    assert run.steps() == {"a": 1, "b": 2, "v": 1}


def test_abort_of_the_rest_after_an_answer_opens_the_barrier() -> None:
    run = Run(Graph([Agent("a", fan_out=(1, 2)), Agent("b", Edge("a"))]))
    for event in (run.arrive, run.arrive, run.finish, run.arrive, run.arrive, run.abort):
        event("a")
    assert run.steps()["a"] == 0
    run.abort("a")
    run.abort("a")
    assert run.steps() == {"a": 1, "b": 1}


def test_abort_of_a_new_round_takes_back_what_it_opened() -> None:
    join = Agent("join", All((Edge("left"), Edge("right"))))
    run = Run(Graph([Agent("left"), Agent("right"), join], repeat=True))
    walk(run, ["left", "right", "join"])
    run.arrive("right")
    run.abort("right")
    run.follow()
    assert run.ended


def test_abort_does_not_bring_back_an_end_that_a_later_round_used() -> None:
    run = walk(Run(Graph([Agent("a"), Agent("b")], repeat=True)), ["a", "b"])
    run.arrive("a")
    walk(run, ["b"])
    run.arrive("b")
    run.abort("a")
    assert not run.expects_next


def test_abort_after_one_of_two_overlapping_starts_was_answered_stands() -> None:
    run = walk(Run(sequence(3)), ["a0"])
    run.arrive("a1")
    run.arrive("a1")
    run.finish("a1")
    run.abort("a1")
    assert run.steps() == {"a0": FAR, "a1": FAR, "a2": 1}


def test_abort_of_a_call_that_was_retried_meanwhile_lets_the_run_end() -> None:
    run = walk(Run(sequence(2)), ["a0"])
    for event in (run.arrive, run.arrive, run.abort, run.finish):
        event("a1")
    assert run.ended


def test_abort_of_a_whole_fan_out_that_was_retried_meanwhile_awaits_no_more() -> None:
    run = Run(Graph([Agent("a", fan_out=(2, 2)), Agent("b", Edge("a"))]))
    for event in (*[run.arrive] * 4, *[run.abort] * 2, *[run.finish] * 2):
        event("a")
    assert run.steps() == {"a": FAR, "b": 1}


def test_abort_of_the_rest_of_the_last_round_leaves_room_in_this_one() -> None:
    entry = Agent("a", Either((Edge(START), Edge("b"))), (1, 3))
    run = Run(Graph([entry, Agent("b", Edge("a"))]))
    run.arrive("a")
    walk(run, ["a", "b"])  # without waiting for the first call
    run.arrive("a")
    run.abort("a")
    unexpected = run.unexpected
    assert [run.arrive("a") for _ in range(3)] == [True, True, False]
    assert run.unexpected == unexpected + 1


def test_abort_of_the_last_in_a_full_fan_out_whose_successor_started_lets_the_run_end() -> None:
    run = Run(Graph([Agent("w", fan_out=(1, 2)), Agent("join", Edge("w"))]))
    run.arrive("w")
    walk(run, ["w", "join"])
    run.abort("w")
    assert run.ended


def test_abort_of_a_call_that_its_successor_did_not_wait_for_awaits_it_no_more() -> None:
    run = Run(sequence(3))
    run.arrive("a0")
    run.arrive("a1")
    run.abort("a0")
    assert run.steps() == {"a0": FAR, "a1": 0, "a2": 1}
    walk(run, ["a2"])
    run.finish("a1")
    assert run.ended


def test_abort_after_the_successor_that_did_not_wait_went_away_too_awaits_both() -> None:
    run = Run(sequence(2))
    run.arrive("a0")
    run.arrive("a1")
    run.abort("a1")
    run.abort("a0")
    assert run.steps() == {"a0": 1, "a1": 2}
    assert not run.begun


@settings(max_examples=150)
@given(
    st.integers(1, 4), st.lists(st.sampled_from([Run.arrive, Run.arrive, Run.finish, Run.abort]))
)
def test_fan_out_after_any_calls_awaits_what_its_starts_lack(
    most: int, events: list[Callable[[Run, str], object]]
) -> None:
    """An agent that is called again and again, its starts overlapping or one after the other."""
    run = walk(Run(Graph([Agent("a"), Agent("b", Edge("a"), (1, most))])), ["a"])
    calls = 0
    for event in events:
        if event is Run.arrive or run.in_flight:
            event(run, "b")
            calls += {Run.arrive: 1, Run.abort: -1}.get(event, 0)
        awaited = calls == 0 or calls % most > 0
        assert run.steps()["b"] == (0 if run.in_flight else 1 if awaited else FAR)


def test_memory_of_one_run_after_many_rounds_is_that_of_a_few() -> None:
    """Invariant 39: undoing reaches back to the last answer, not to the first call."""
    entry = Agent("a", Either((Edge(START), Edge("b"))), (1, 3))
    graph = Graph([entry, Agent("b", Edge("a"), (1, 3))])
    sizes = []
    for rounds in (3, 100):
        run = Run(graph)
        for _ in range(rounds):
            walk(run, ["a", "b"])
            for event in (run.arrive, run.arrive, run.abort, run.finish):
                event("b")
        sizes.append(contents(run, set()))
    assert sizes[0] == sizes[1]


def test_memory_of_one_run_after_many_calls_without_an_answer_is_that_of_a_few() -> None:
    """Invariant 39."""
    agents = [Agent("a", Either((Edge(START), Edge("b"))), (1, 2)), Agent("b", Edge("a"), (1, 2))]
    sizes = []
    for rounds in (3, 100):
        run = Run(Graph(agents))
        run.arrive("a")
        for _ in range(rounds):
            run.arrive("b")
            run.abort("a")
            run.arrive("a")
            run.abort("b")
        sizes.append(contents(run, set()))
    assert sizes[0] == sizes[1]
