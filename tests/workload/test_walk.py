from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graphs import holds, loaded_of, workflows

from kvflow.recipe.load import Loaded
from kvflow.runs.run import Run
from kvflow.workload import Walk, plan_run


def walk_of(agents: dict[str, dict[str, Any]], **workload: Any) -> Walk:
    described = {name: {"fixed_tokens": 8, **spec} for name, spec in agents.items()}
    loaded = loaded_of({"agents": described, "workload": workload})
    return Walk(loaded.graph, plan_run(loaded, 0, 7))


def names(walk: Walk) -> list[str]:
    return [call.agent for call in walk.ready()]


def test_walk_barrier_waits_for_its_last_part() -> None:
    walk = walk_of({"a": {}, "b": {}, "c": {"after": ["a", "b"]}})
    a, b = walk.ready()
    walk.finished(b)
    assert names(walk) == []
    walk.finished(a)
    assert names(walk) == ["c"]


@pytest.mark.parametrize("first", [0, 1])
def test_walk_branch_opens_with_whichever_part_is_first(first: int) -> None:
    walk = walk_of({"a": {}, "b": {}, "c": {"after": {"any": ["a", "b"]}}})
    walk.finished(walk.ready()[first])
    assert names(walk) == ["c"]


def test_walk_branch_does_not_open_again_with_its_second_part() -> None:
    walk = walk_of({"a": {}, "b": {}, "c": {"after": {"any": ["a", "b"]}}})
    a, b = walk.ready()
    walk.finished(a)
    assert names(walk) == ["c"]
    walk.finished(b)
    assert names(walk) == []


def test_walk_fan_out_starts_together_and_the_next_waits_for_all() -> None:
    walk = walk_of({"a": {"fan_out": 3}, "b": {"after": "a"}})
    fan = walk.ready()
    assert [call.part for call in fan] == [0, 1, 2]
    walk.finished(fan[2])
    walk.finished(fan[0])
    assert names(walk) == []
    walk.finished(fan[1])
    assert names(walk) == ["b"]


def test_walk_is_last_of_a_sequence_names_its_end_only() -> None:
    walk = walk_of({"a": {}, "b": {"after": "a"}})
    (a,) = walk.ready()
    assert not walk.is_last(a)
    walk.finished(a)
    (b,) = walk.ready()
    assert walk.is_last(b)


def test_walk_is_last_of_two_in_flight_is_not_known() -> None:
    walk = walk_of({"a": {}, "b": {}})
    assert not any(walk.is_last(call) for call in walk.ready())


def test_walk_finished_twice_is_refused() -> None:
    walk = walk_of({"a": {}})
    (a,) = walk.ready()
    walk.finished(a)
    with pytest.raises(KeyError):
        walk.finished(a)


def test_walk_without_calls_is_done() -> None:
    loaded = loaded_of({"agents": {"a": {"fixed_tokens": 8}}})
    assert Walk(loaded.graph, ()).done


@given(workflows(), st.integers(0, 99), st.randoms(use_true_random=False))
@settings(max_examples=80)
def test_walk_in_any_order_of_completion_gives_every_call_once_and_no_later_than_allowed(
    data: dict[str, Any], run: int, order: Any
) -> None:
    loaded = loaded_of(data)
    calls = plan_run(loaded, run, 7)
    walk = Walk(loaded.graph, calls)
    started: set[int] = set()
    finished: set[int] = set()
    in_flight = []

    def allowed(index: int) -> bool:
        call = calls[index]
        come = {feed.source for feed in call.feeds if finished.issuperset(feed.calls)}
        continued = call.extends is None or call.extends in finished
        return continued and holds(data["agents"][call.agent]["after"], come)

    while True:
        new = walk.ready()
        assert [call.index for call in new] == [
            index for index in range(len(calls)) if index not in started and allowed(index)
        ]
        started |= {call.index for call in new}
        in_flight += new
        if not in_flight:
            break
        call = in_flight.pop(order.randrange(len(in_flight)))
        walk.finished(call)
        finished.add(call.index)
    assert finished == set(range(len(calls)))
    assert walk.done


def surprises_of_a_walk_in_step(loaded: Loaded, run: int) -> int:
    """Calls of a planned run that the server's account of it did not expect."""
    walk = Walk(loaded.graph, plan_run(loaded, run, 7))
    expected = Run(loaded.graph)
    while wave := walk.ready():
        for call in wave:
            expected.arrive(call.agent)
        for call in wave:
            expected.finish(call.agent)
            walk.finished(call)
    assert walk.done
    return expected.unexpected


@given(workflows(), st.integers(0, 99))
@settings(max_examples=60)
def test_walk_in_step_makes_no_call_that_the_server_does_not_expect(
    data: dict[str, Any], run: int
) -> None:
    for spec in data["agents"].values():
        spec["fan_out"] = 1
    assert surprises_of_a_walk_in_step(loaded_of(data), run) == 0


def maybe(source: str) -> dict[str, Any]:
    return {"agent": source, "p": 0.25}


def test_walk_whose_branch_opens_by_another_than_the_server_thought_is_expected() -> None:
    """The first agent chooses the join; the branch beside it opens by what comes after."""
    loaded = loaded_of(
        {
            "agents": {
                "branch": {"fixed_tokens": 8, "after": {"any": [maybe("first"), maybe("second")]}},
                "join": {"fixed_tokens": 8, "after": [maybe("branch"), maybe("first")]},
                "first": {"fixed_tokens": 8},
                "second": {"fixed_tokens": 8, "after": "first"},
            }
        }
    )
    joined = [
        run
        for run in range(400)
        if [call.agent for call in plan_run(loaded, run, 7)]
        == ["first", "second", "branch", "join"]
    ]
    assert joined
    assert [surprises_of_a_walk_in_step(loaded, run) for run in joined] == [0] * len(joined)


def test_walk_whose_router_chooses_again_before_its_first_choice_starts_is_expected() -> None:
    loaded = loaded_of(
        {
            "agents": {
                "router": {"fixed_tokens": 8, "after": {"any": ["start", "back"]}},
                "back": {"fixed_tokens": 8, "after": "router"},
                "other": {"fixed_tokens": 8, "after": maybe("router")},
                "join": {"fixed_tokens": 8, "after": [maybe("router"), "other"]},
            },
            "workload": {"max_calls": 20},
        }
    )
    assert [surprises_of_a_walk_in_step(loaded, run) for run in range(40)] == [0] * 40
    assert any(call.agent == "join" for run in range(40) for call in plan_run(loaded, run, 7))
