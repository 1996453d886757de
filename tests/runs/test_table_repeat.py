"""Workflows that repeat: a finished run stands for the next one until that begins."""

from support.run_table import driver
from support.step_oracles import peer, sequence

from kvflow.graph import Agent, Edge, Graph
from kvflow.runs import Limits


def test_repeat_finished_run_is_expected_until_the_next_begins() -> None:
    d = driver(sequence(3, repeat=True))
    for agent in ("a0", "a1", "a2"):
        d.call(agent, "r1")
    assert d.steps() == {"a0": 1, "a1": 2, "a2": 3}
    d.arrive("a0", "r2")
    assert [(view.run, view.is_expected) for view in d.table.runs()] == [("r2", False)]
    assert d.steps() == {"a0": 0, "a1": 1, "a2": 2}


def test_repeat_expected_run_expires() -> None:
    """Invariant 38."""
    d = driver(sequence(2, repeat=True), Limits(silent_ticks=3))
    d.call("a0")
    d.call("a1")
    for _ in range(3):
        assert d.steps() == {"a0": 1, "a1": 2}
        d.apply(d.table.tick())
    assert d.steps() == {}


def test_repeat_next_run_clears_the_alternatives_of_the_one_it_follows() -> None:
    d = driver(peer(repeat=True))
    for agent in ("planner", "executor", "expresser", "reviewer"):
        d.call(agent, "r1")
    assert d.steps() == {"planner": 1, "executor": 2, "expresser": 1, "reviewer": 2}
    d.arrive("planner", "r2")
    assert d.steps() == {"planner": 0, "executor": 1, "expresser": 2, "reviewer": 3}


def test_repeat_explicit_end_leaves_one_expected_run() -> None:
    d = driver(peer(repeat=True))
    d.call("planner", "r1")
    d.apply(d.table.end("app", "r1"))
    assert d.steps() == {"planner": 1, "executor": 2, "expresser": 3, "reviewer": 4}
    d.apply(d.table.end("app", "r1"))
    d.arrive("planner", "r2")
    assert [view.run for view in d.table.runs()] == ["r2"]


def test_repeat_one_expected_run_per_finished_run() -> None:
    d = driver(sequence(1, repeat=True))
    for run in ("r1", "r2"):
        call_id = d.arrive("a0", run)
        d.arrive("a0", run + "x")
        d.finish(call_id)
    assert [view.run for view in d.table.runs() if view.is_expected] == ["r2"]


def test_repeat_aborted_first_call_gives_the_expectation_back() -> None:
    d = driver(sequence(3, repeat=True))
    for agent in ("a0", "a1", "a2"):
        d.call(agent, "r1")
    before = d.steps()
    d.apply(d.table.abort(d.arrive("a0", "r2")))
    assert d.steps() == before
    d.arrive("a0", "r3")
    assert [view.run for view in d.table.runs()] == ["r3"]


def test_repeat_run_whose_next_has_begun_leaves_nothing_when_it_ends() -> None:
    graph = Graph([Agent("a"), Agent("b", Edge("a")), Agent("c", Edge("a"))], repeat=True)
    d = driver(graph)
    d.call("a", "r1")
    d.call("b", "r1")
    late = d.arrive("c", "r1")
    d.arrive("a", "r2")
    d.finish(late)
    assert [view.run for view in d.table.runs()] == ["r2"]


def test_repeat_run_that_gives_its_own_steps_takes_no_ones_place() -> None:
    d = driver(sequence(2, repeat=True))
    d.call("a0", "r1")
    d.call("a1", "r1")
    d.call("a0", "r2", steps={"x": 3})
    d.call("a0", "r2")
    assert [(view.run, view.is_expected) for view in d.table.runs()] == [
        ("r1", True),
        ("r2", False),
    ]


def test_repeat_run_that_comes_to_give_its_own_steps_stands_for_no_next_one() -> None:
    d = driver(sequence(2, repeat=True))
    d.call("a0")
    d.call("a1")
    d.call("a1", steps={"x": 3})
    assert [view.is_expected for view in d.table.runs()] == [False]
    assert d.steps() == {"x": 3}


def test_repeat_next_run_takes_the_place_of_a_closed_run_before_that_of_one_that_may_go_on() -> (
    None
):
    d = driver(peer(repeat=True))
    for agent in ("planner", "executor", "expresser"):
        for call_id in [d.arrive(agent, run) for run in ("goes on", "closes")]:
            d.finish(call_id)
    d.call("reviewer", "goes on")
    d.call("reviewer", "closes", final=True)
    d.arrive("planner", "next")
    d.arrive("expresser", "goes on")
    assert [view.run for view in d.table.runs()] == ["next", "goes on"]
    assert d.table.counters.unexpected == 0


def test_repeat_next_run_takes_the_place_of_one_out_of_agents_before_one_that_may_go_on() -> None:
    d = driver(Graph([Agent("router"), Agent("expert", Edge("router", 0.5))], repeat=True))
    for call_id in [d.arrive("router", run) for run in ("goes on", "runs out")]:
        d.finish(call_id)
    d.call("expert", "runs out")
    d.arrive("router", "next")
    d.arrive("expert", "goes on")
    assert [view.run for view in d.table.runs()] == ["next", "goes on"]
    assert d.table.counters.unexpected == 0


def test_repeat_next_run_takes_the_place_of_the_run_that_was_over_first() -> None:
    d = driver(peer(repeat=True))
    for run in ("late", "early"):
        d.call("planner", run)
    for run in ("early", "late"):
        d.call("planner", run, final=True)
    d.arrive("planner", "next")
    assert [view.run for view in d.table.runs()] == ["late", "next"]
