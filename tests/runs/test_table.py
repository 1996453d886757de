"""Every live run: what each event changes, and what an end leaves behind (invariants 7 to 11)."""

import pytest
from support.run_table import Driver, driver
from support.step_oracles import cycle, peer, sequence

from kvflow.graph import MAX_STEPS, Graph
from kvflow.hints import Tag
from kvflow.runs import Key, Limits, RunTable, StepChange

FAR = MAX_STEPS


def test_arrive_first_call_opens_the_run() -> None:
    d = driver(sequence(3))
    assert d.steps() == {}
    d.arrive("a0")
    assert d.steps() == {"a0": 0, "a1": 1, "a2": 2}


def test_events_return_only_what_changed() -> None:
    d = driver(sequence(3))
    call_id = d.arrive("a0")
    assert d.table.finish(call_id) == [StepChange("app", "a0", FAR)]
    tag = Tag("app", "w", "r", "a1")
    assert d.table.arrive(tag, "x") == [StepChange("app", "a1", 0), StepChange("app", "a2", 1)]


def test_steps_are_the_least_over_the_runs_of_a_client() -> None:
    d = driver(cycle(4))
    d.arrive("a0", "r1")
    d.call("a0", "r2")
    d.call("a1", "r2")
    d.arrive("a2", "r2")
    assert d.steps() == {"a0": 0, "a1": 1, "a2": 0, "a3": 1}
    assert d.table.waiting("app", "a1") == 1


def test_two_clients_with_the_same_names_never_touch_each_other() -> None:
    """Invariant 7."""
    d = driver(sequence(3), clients=("app", "other"))
    d.arrive("a0", client="app")
    before = d.steps("app")
    d.call("a0", client="other")
    d.arrive("a1", client="other")
    d.apply(d.table.end("other", "r"))
    assert (d.steps("app"), d.steps("other")) == (before, {})


def test_steps_that_grow_are_reported() -> None:
    """Invariant 10."""
    d = driver(cycle(5))
    call_id = d.arrive("a0")
    d.finish(call_id)
    assert d.steps()["a0"] == 5


@pytest.mark.parametrize("how", ["end", "forget", "expire"])
def test_run_that_is_gone_leaves_the_steps_that_exist_without_it(how: str) -> None:
    """Invariants 8 and 9."""
    d = driver(cycle(4), Limits(silent_ticks=2))
    d.table.register("app", "v", cycle(4))
    d.arrive("a2", "stays", workflow="w")
    before = d.steps()
    d.call("a3", "goes", workflow="v")
    assert d.steps() != before
    if how == "end":
        d.apply(d.table.end("app", "goes"))
    elif how == "forget":
        d.apply(d.table.forget("app", "v"))
    else:
        for _ in range(2):
            d.apply(d.table.tick())
    assert d.steps() == before


def test_run_that_ends_by_itself_is_no_longer_live() -> None:
    d = driver(sequence(2))
    d.call("a0")
    d.call("a1")
    assert d.steps() == {}
    assert list(d.table.runs()) == []


def test_arrive_twice_with_one_call_id_counts_once() -> None:
    """Invariant 11: a call that is queued again is the same call."""
    d = driver(sequence(3))
    tag = Tag("app", "w", "r", "a0")
    d.apply(d.table.arrive(tag, "x"))
    assert d.table.arrive(tag, "x") == []
    d.finish("x")
    assert d.steps() == {"a0": FAR, "a1": 1, "a2": 2}


@pytest.mark.parametrize("event", ["finish", "abort"])
def test_departure_of_an_unknown_call_changes_nothing(event: str) -> None:
    """Invariant 11: late and duplicate events."""
    d = driver(sequence(3))
    call_id = d.arrive("a0")
    d.finish(call_id)
    before = d.steps()
    assert getattr(d.table, event)(call_id) == []
    assert getattr(d.table, event)("never seen") == []
    assert d.steps() == before


def test_finish_after_its_run_ended_changes_nothing() -> None:
    """Invariant 37."""
    d = driver(sequence(3))
    call_id = d.arrive("a0")
    d.apply(d.table.end("app", "r"))
    assert d.table.finish(call_id) == []
    assert d.steps() == {}


def test_abort_of_the_call_that_opened_a_run_leaves_no_run() -> None:
    d = driver(sequence(3))
    d.apply(d.table.abort(d.arrive("a0")))
    assert d.steps() == {}
    assert list(d.table.runs()) == []


def test_abort_in_the_middle_awaits_the_agent_again() -> None:
    d = driver(sequence(3))
    d.call("a0")
    before = d.steps()
    d.apply(d.table.abort(d.arrive("a1")))
    assert d.steps() == before


def test_unexpected_call_is_counted() -> None:
    d = driver(sequence(3))
    d.call("a0")
    d.call("a2")
    assert d.table.counters.unexpected == 1


def test_unregistered_workflow_counts_as_zero_in_flight_and_has_no_steps_after() -> None:
    d = Driver()
    call_id = d.arrive("planner")
    assert d.steps() == {"planner": 0}
    d.finish(call_id)
    assert d.steps() == {}
    assert list(d.table.runs()) == []
    assert d.table.counters.unknown == 1


def test_unknown_agent_of_a_registered_graph_leaves_the_run_alone() -> None:
    """Invariant 36."""
    d = driver(sequence(3))
    d.call("a0")
    before = d.steps()
    call_id = d.arrive("nobody")
    assert d.steps() == {**before, "nobody": 0}
    d.finish(call_id)
    assert d.steps() == before
    assert (d.table.counters.unknown, d.table.counters.unexpected) == (1, 0)


def test_unknown_agent_first_does_not_open_the_run() -> None:
    d = driver(sequence(3))
    d.arrive("nobody")
    assert d.steps() == {"nobody": 0}
    d.arrive("a0")
    assert d.steps() == {"nobody": 0, "a0": 0, "a1": 1, "a2": 2}


def test_given_steps_need_no_graph_and_replace_each_other() -> None:
    d = Driver()
    d.call("a", steps={"a": 3, "b": 1})
    assert d.steps() == {"a": 3, "b": 1}
    call_id = d.arrive("b", steps={"b": 2, "c": 1})
    assert d.steps() == {"b": 0, "c": 1}
    d.finish(call_id)
    assert d.steps() == {"b": 2, "c": 1}
    assert d.table.counters.unknown == 0


def test_given_steps_win_over_the_graph() -> None:
    d = driver(sequence(3))
    call_id = d.arrive("a0")
    d.call("a1", steps={"a2": 7})
    assert d.steps() == {"a2": 7, "a0": 0}
    d.finish(call_id)
    assert d.steps() == {"a2": 7}


def test_given_steps_stay_until_the_next_are_given() -> None:
    d = driver(sequence(3))
    d.call("a0")
    d.call("a1", steps={"a2": 7})
    d.call("a0")
    assert d.steps() == {"a2": 7}
    assert d.table.counters.unexpected == d.table.counters.unknown == 0


def test_given_steps_end_with_their_run() -> None:
    d = Driver()
    d.call("a", steps={"a": 3})
    d.apply(d.table.end("app", "r"))
    assert d.steps() == {}


def test_final_call_ends_its_run_when_it_finishes() -> None:
    d = driver(cycle(3))
    call_id = d.arrive("a0", final=True)
    assert d.steps() == {"a0": 0, "a1": 1, "a2": 2}
    d.finish(call_id)
    assert d.steps() == {}


def test_final_call_waits_for_others_in_flight() -> None:
    d = driver(peer())
    d.call("planner")
    other = d.arrive("executor")
    d.call("executor", final=True)
    assert d.steps()["executor"] == 0
    d.finish(other)
    assert d.steps() == {}


def test_aborted_final_call_ends_nothing() -> None:
    d = driver(cycle(3))
    d.call("a0")
    before = d.steps()
    d.apply(d.table.abort(d.arrive("a1", final=True)))
    assert d.steps() == before


def test_end_by_name_reaches_every_workflow_of_that_client_only() -> None:
    d = driver(cycle(3), clients=("app", "other"))
    d.table.register("app", "v", sequence(2))
    for workflow, client in (("w", "app"), ("v", "app"), ("w", "other")):
        d.call("a0", "r", client, workflow=workflow)
    d.apply(d.table.end("app", "r"))
    assert d.steps("app") == {}
    assert d.steps("other") == {"a0": 3, "a1": 1, "a2": 2}


def test_register_again_is_for_runs_that_begin_after() -> None:
    d = driver(sequence(3))
    d.arrive("a0", "old")
    d.table.register("app", "w", sequence(2))
    assert d.steps() == {"a0": 0, "a1": 1, "a2": 2}
    d.apply(d.table.end("app", "old"))
    d.arrive("a0", "new")
    assert d.steps() == {"a0": 0, "a1": 1}


def test_forget_lets_later_calls_go_without_a_graph() -> None:
    d = driver(sequence(3))
    d.apply(d.table.forget("app", "w"))
    d.arrive("a0")
    assert d.steps() == {"a0": 0}


def test_served_graph_is_walked_by_every_client() -> None:
    d = Driver()
    d.table.serve("w", sequence(2))
    d.arrive("a0", client="one")
    d.arrive("a0", client="two")
    assert d.steps("one") == d.steps("two") == {"a0": 0, "a1": 1}


def test_served_graph_gives_way_to_a_registered_one() -> None:
    d = driver(sequence(2))
    d.table.serve("w", sequence(3))
    d.arrive("a0")
    assert d.steps() == {"a0": 0, "a1": 1}


def test_runs_shows_calls_in_flight_and_steps() -> None:
    d = driver(peer())
    d.call("planner")
    d.arrive("executor")
    d.arrive("executor")
    d.arrive("nobody")
    (view,) = d.table.runs()
    assert (view.client, view.workflow, view.run) == ("app", "w", "r")
    assert view.in_flight == {"executor": 2, "nobody": 1}
    assert view.steps == d.steps()


def test_run_whose_last_call_goes_away_after_the_final_one_was_answered_is_over() -> None:
    d = driver(sequence(3))
    final, other = d.arrive("a0", final=True), d.arrive("a1")
    d.finish(final)
    d.apply(d.table.abort(other))
    assert d.steps() == {}


def ends_of(*events: str, graph: Graph | None = None) -> list[Key]:
    """Who is told to have ended, of one run of which these agents speak, the last for good."""
    ended: list[Key] = []
    table = RunTable(Limits(silent_ticks=2), on_end=ended.append)
    if graph is not None:
        table.register("app", "w", graph)
    for number, agent in enumerate(events):
        table.arrive(Tag("app", "w", "r", agent.strip("!"), final="!" in agent), str(number))
        table.finish(str(number))
    table.tick()
    assert ended == [] or events[-1] in ("a2", "a0!")
    table.tick()
    return ended


@pytest.mark.parametrize("events", [("a0", "a0!"), ("a0", "a1", "a2"), ("a0",)])
def test_run_that_is_over_is_told_of_whether_it_said_so_ran_out_or_fell_silent(
    events: tuple[str, ...],
) -> None:
    assert ends_of(*events, graph=sequence(3)) == [Key("app", "w", "r")]


def test_run_without_a_graph_is_over_when_its_client_says_so() -> None:
    assert ends_of("a0", "a0") == []
    assert ends_of("a0", "a0!") == [Key("app", "w", "r")]


def test_runs_that_move_are_told_with_their_own_steps_and_without_any_once_they_are_gone() -> None:
    moved: list[tuple[str, dict[str, int]]] = []
    table = RunTable(on_move=lambda key, steps: moved.append((key.run, dict(steps))))
    table.arrive(Tag("app", "w", "r1", "a", steps={"b": 3}), "c1")
    for call_id in ("c2", "c3"):
        table.arrive(Tag("app", "w", "r2", "a", steps={"b": 1}), call_id)
    assert table.steps_in(Key("app", "w", "r1")) == {"a": 0, "b": 3}
    table.end("app", "r2", expect_next=False)
    assert moved == [("r1", {"a": 0, "b": 3}), ("r2", {"a": 0, "b": 1}), ("r2", {})]
    assert table.steps_in(Key("app", "w", "r2")) == {}
