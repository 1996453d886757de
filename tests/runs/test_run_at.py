"""A run as a person describes it."""

import pytest
from support.step_oracles import peer, sequence
from support.walks import parallel, walk

from kvflow.graph import MAX_STEPS, Agent, All, Edge, Graph
from kvflow.runs import Run

FAR = MAX_STEPS


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


def test_at_next_round_clears_the_alternatives_of_the_last() -> None:
    done = ["planner", "executor", "expresser", "reviewer"]
    run = Run.at(peer(repeat=True), done=done, running=["planner"])
    assert run.steps() == {"planner": 0, "executor": 1, "expresser": 2, "reviewer": 3}
