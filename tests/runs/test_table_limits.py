"""Expiry and limits: memory is bounded by what is live (invariants 38 and 39)."""

import pytest
from support.run_table import contents, driver
from support.step_oracles import cycle, peer, sequence

from kvflow.errors import UsageError
from kvflow.graph import MAX_STEPS
from kvflow.runs import Limits


def test_tick_run_with_a_call_in_flight_never_expires() -> None:
    d = driver(sequence(3), Limits(silent_ticks=1))
    call_id = d.arrive("a0")
    for _ in range(5):
        d.apply(d.table.tick())
    assert d.steps() == {"a0": 0, "a1": 1, "a2": 2}
    d.finish(call_id)
    d.apply(d.table.tick())
    assert (d.steps(), d.table.counters.expired) == ({}, 1)


def test_tick_run_that_spoke_again_does_not_expire_for_its_old_silence() -> None:
    d = driver(sequence(3), Limits(silent_ticks=2))
    d.call("a0")
    d.apply(d.table.tick())
    d.arrive("a1")
    d.apply(d.table.tick())
    d.apply(d.table.tick())
    assert d.steps() == {"a0": MAX_STEPS, "a1": 0, "a2": 1}


def test_tick_counts_silence_from_the_last_event() -> None:
    d = driver(sequence(3), Limits(silent_ticks=2))
    d.call("a0")
    d.apply(d.table.tick())
    assert [view.idle_ticks for view in d.table.runs()] == [1]
    d.call("a1")
    d.apply(d.table.tick())
    assert [view.idle_ticks for view in d.table.runs()] == [1]
    assert d.steps()["a2"] == 1


def test_runs_per_client_over_the_limit_lets_the_quietest_go() -> None:
    """Invariant 39."""
    d = driver(cycle(2), Limits(runs_per_client=2))
    d.call("a0", "r1")
    d.call("a0", "r2")
    d.call("a1", "r1")
    d.call("a0", "r3")
    assert [view.run for view in d.table.runs()] == ["r1", "r3"]
    assert d.table.counters.evicted == 1


def test_clients_over_the_limit_let_the_quietest_go() -> None:
    """Invariant 39."""
    d = driver(cycle(2), Limits(clients=2), clients=("one", "two", "three"))
    for client in ("one", "two", "one", "three"):
        d.call("a0", client, client)
        d.call("a0", client + "x", client)
    assert [view.client for view in d.table.runs()] == ["one", "one", "three", "three"]
    assert d.table.counters.evicted == 2


def test_agents_per_client_over_the_limit_let_the_quietest_run_go() -> None:
    """Invariant 39."""
    d = driver(cycle(3), Limits(agents_per_client=4))
    d.call("a0", "old", workflow="w")
    d.call("x", "new", workflow="v", steps={"x": 1, "y": 2})
    assert d.steps() == {"x": 1, "y": 2}
    assert d.table.counters.evicted == 1


def test_finish_after_its_run_was_evicted_changes_nothing() -> None:
    d = driver(cycle(2), Limits(runs_per_client=1))
    call_id = d.arrive("a0", "r1")
    d.arrive("a0", "r2")
    before = d.steps()
    assert d.table.finish(call_id) == []
    assert d.steps() == before


def test_register_one_workflow_too_many_is_refused() -> None:
    d = driver(cycle(2), Limits(workflows=1))
    d.table.register("app", "w", cycle(3))
    with pytest.raises(UsageError, match="'v' is one too many"):
        d.table.register("app", "v", cycle(2))


def test_register_graph_with_too_many_agents_is_refused() -> None:
    with pytest.raises(UsageError, match="has 3 agents"):
        driver(cycle(3), Limits(agents_per_client=2))


def test_memory_after_many_runs_is_that_of_the_live_ones() -> None:
    """Invariant 39: bounded by live agents, not by the calls served."""
    sizes = []
    for rounds in (3, 300):
        d = driver(peer(repeat=True), Limits(silent_ticks=5))
        for i in range(rounds):
            for agent in ("planner", "executor", "executor", "expresser", "reviewer"):
                d.call(agent, f"r{i}")
                d.call(agent, "the same one, for ever", workflow="v", steps={agent: 1})
            d.call(f"unknown {i}", f"r{i}", f"client {i}")
            d.apply(d.table.abort(d.arrive("planner", f"aborted {i}", workflow="u")))
            d.apply(d.table.end("app", f"r{i - 1}"))
            d.apply(d.table.tick())
        sizes.append(contents(d.table, set()))
    assert sizes[0] == sizes[1]


def test_memory_after_everything_expired_is_that_of_a_new_table() -> None:
    """Invariants 9 and 39."""
    d = driver(peer(repeat=True), Limits(silent_ticks=1))
    new = contents(d.table, set())
    for i in range(50):
        d.call("planner", f"r{i}", f"c{i % 3}")
        d.call("a", f"g{i}", f"c{i % 3}", steps={"a": 1, "b": 2})
        d.call("planner", f"r{i}")
    d.apply(d.table.tick())
    assert d.steps() == {}
    assert contents(d.table, set()) == new


def test_memory_of_a_client_does_not_grow_with_the_workflows_it_had() -> None:
    """Invariant 39."""
    sizes = []
    for rounds in (3, 50):
        d = driver(cycle(2))
        d.call("a0", "stays")
        for i in range(rounds):
            d.table.register("app", f"w{i}", sequence(1, repeat=True))
            d.call("a0", workflow=f"w{i}")
            d.apply(d.table.forget("app", f"w{i}"))
        sizes.append(contents(d.table, set()))
    assert sizes[0] == sizes[1]
