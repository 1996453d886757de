"""Successors that start before a predecessor that they need has its answer."""

import pytest
from support.walks import choice, parallel, walk

from kvflow.graph import MAX_STEPS, START, Agent, Edge, Either, Graph
from kvflow.runs import Run

FAR = MAX_STEPS


def fan_out(*successors: Agent) -> Run:
    """One call of `w` in flight after two that have their answers."""
    run = Run(Graph([Agent("w", fan_out=(1, 4)), Agent("join", Edge("w")), *successors]))
    run.arrive("w")
    return walk(run, ["w", "w"])


@pytest.mark.parametrize("event", [Run.finish, Run.abort])
def test_straggler_of_a_fan_out_does_not_revive_a_successor_that_has_run(event: object) -> None:
    assert callable(event)
    run = walk(fan_out(), ["join"])
    event(run, "w")
    assert run.ended


def test_straggler_of_a_fan_out_opens_the_way_for_other_successors() -> None:
    run = walk(fan_out(Agent("log", Edge("w"))), ["join"])
    run.finish("w")
    assert run.steps() == {"w": FAR, "join": FAR, "log": 1}


def test_straggler_leaves_out_the_alternatives_of_a_successor_that_has_run() -> None:
    run = Run(choice())
    run.arrive("ask")
    walk(run, ["yes"])
    run.finish("ask")
    assert run.ended


def test_successor_that_started_early_after_either_of_two_is_awaited_for_both() -> None:
    back = Either((Edge(START), Edge("w1"), Edge("w2")))
    graph = Graph([Agent("boss", back), Agent("w1", Edge("boss")), Agent("w2", Edge("boss"))])
    run = walk(Run(graph), ["boss"])
    run.arrive("w1")
    run.arrive("w2")
    walk(run, ["boss"])
    run.finish("w1")
    assert run.steps()["boss"] == 1


def test_successor_that_started_early_is_awaited_again_after_the_next_start() -> None:
    run = walk(fan_out(), ["join"])
    run.finish("w")
    walk(run, ["w"])
    assert run.steps()["join"] == 1


@pytest.mark.parametrize("first", ["join", "w"])
def test_abort_of_a_successor_that_started_early_awaits_it_again(first: str) -> None:
    run = fan_out()
    run.arrive("join")
    run.abort("join") if first == "join" else run.finish("w")
    run.finish("w") if first == "join" else run.abort("join")
    assert run.steps() == {"w": 1, "join": 1}


def test_abort_of_a_second_early_start_leaves_the_first_one_in_force() -> None:
    run = walk(fan_out(), ["join"])
    run.arrive("join")
    run.abort("join")
    run.finish("w")
    assert run.ended


def test_abort_of_an_early_start_does_not_revive_an_alternative_that_has_run() -> None:
    run = Run(choice())
    run.arrive("ask")
    run.arrive("yes")
    walk(run, ["no"])
    run.abort("yes")
    run.finish("ask")
    assert run.steps() == {"ask": FAR, "yes": 1, "no": FAR}


def test_bystander_that_started_early_leaves_the_barrier_to_open() -> None:
    run = Run(parallel())
    run.arrive("left")
    walk(run, ["log", "right"])
    run.finish("left")
    assert run.steps() == {"left": FAR, "right": FAR, "join": 1, "log": FAR}
