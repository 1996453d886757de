"""Calls that go away without an answer."""

import pytest
from support.step_oracles import peer, sequence
from support.walks import choice, parallel, walk

from kvflow.graph import MAX_STEPS
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
