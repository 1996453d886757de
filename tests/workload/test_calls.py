from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graphs import holds, loaded_of, workflows

from kvflow.graph import START
from kvflow.recipe.load import Loaded
from kvflow.workload import Call, plan_run


def flow(agents: dict[str, dict[str, Any]], **workload: Any) -> Loaded:
    described = {name: {"fixed_tokens": 8, **spec} for name, spec in agents.items()}
    return loaded_of({"agents": described, "workload": workload})


def speakers(calls: tuple[Call, ...]) -> list[str]:
    return [call.agent for call in calls]


def test_plan_run_of_a_sequence_makes_one_call_after_the_other() -> None:
    calls = plan_run(flow({"a": {}, "b": {"after": "a"}, "c": {"after": "b"}}), 0, 7)
    assert speakers(calls) == ["a", "b", "c"]
    assert [call.predecessors for call in calls] == [(), (0,), (1,)]


def test_plan_run_barrier_follows_all_its_parts() -> None:
    loaded = flow({"a": {}, "b": {}, "c": {"after": ["a", "b"]}})
    assert [(call.agent, call.predecessors) for call in plan_run(loaded, 0, 7)] == [
        ("a", ()),
        ("b", ()),
        ("c", (0, 1)),
    ]


def test_plan_run_tokens_of_one_wave_open_a_branch_once() -> None:
    loaded = flow({"a": {}, "b": {}, "c": {"after": {"any": ["a", "b"]}}})
    assert speakers(plan_run(loaded, 0, 7)) == ["a", "b", "c"]


def test_plan_run_tokens_of_two_waves_open_a_branch_twice() -> None:
    loaded = flow({"a": {}, "b": {"after": "a"}, "c": {"after": {"any": ["a", "b"]}}})
    assert speakers(plan_run(loaded, 0, 7)) == ["a", "b", "c", "c"]


def test_plan_run_fan_out_makes_calls_within_its_range_and_all_feed_the_next() -> None:
    loaded = flow({"a": {"fan_out": "2..4"}, "b": {"after": "a"}})
    sizes = set()
    for run in range(40):
        *fan, last = plan_run(loaded, run, 7)
        assert [call.part for call in fan] == list(range(len(fan)))
        assert last.predecessors == tuple(range(len(fan)))
        sizes.add(len(fan))
    assert sizes == {2, 3, 4}


def test_plan_run_alternatives_that_leave_a_rest_end_some_runs_and_not_others() -> None:
    loaded = flow({"a": {"after": {"any": ["start", {"agent": "a", "p": 0.5}]}}})
    lengths = Counter(len(plan_run(loaded, run, 7)) for run in range(200))
    assert 70 < lengths[1] < 130
    assert 30 < lengths[2] < 70


def test_plan_run_alternative_chosen_again_voids_the_choice_that_still_waits() -> None:
    """In the join the router's choice is its last one: what it chose before went with it."""
    sometimes = {"agent": "router", "p": 0.5}
    loaded = flow(
        {
            "router": {"after": {"any": ["start", "back"]}},
            "back": {"after": "router"},
            "other": {"after": sometimes},
            "join": {"after": [sometimes, "other"]},
        },
        max_calls=30,
    )
    joins = 0
    for run in range(40):
        calls = plan_run(loaded, run, 7)
        for join in [call for call in calls if call.agent == "join"]:
            chosen = {feed.source: feed.calls[0] for feed in join.feeds}
            assert chosen["router"] > calls[chosen["other"]].predecessors[0]
            joins += 1
    assert joins > 0


def test_plan_run_loop_without_end_stops_at_max_calls() -> None:
    loaded = flow({"a": {"after": {"any": ["start", "b"]}}, "b": {"after": "a"}}, max_calls=9)
    assert speakers(plan_run(loaded, 0, 7)) == ["a", "b"] * 4 + ["a"]


def test_plan_run_max_calls_cuts_a_fan_out() -> None:
    loaded = flow({"a": {"fan_out": 5}, "b": {"after": "a"}}, max_calls=3)
    assert speakers(plan_run(loaded, 0, 7)) == ["a", "a", "a"]


def test_plan_run_conversation_extends_the_last_call_of_the_agent() -> None:
    loop = {"any": ["start", "b"]}
    loaded = flow(
        {"a": {"after": loop, "memory": "conversation"}, "b": {"after": "a"}}, max_calls=5
    )
    assert [(call.agent, call.extends) for call in plan_run(loaded, 0, 7)] == [
        ("a", None),
        ("b", None),
        ("a", 0),
        ("b", None),
        ("a", 2),
    ]


def test_plan_run_of_a_rare_start_may_have_no_calls() -> None:
    loaded = flow({"a": {"after": {"agent": "start", "p": 0.5}}})
    assert {len(plan_run(loaded, run, 7)) for run in range(40)} == {0, 1}


def test_plan_run_dynamic_length_of_a_call_does_not_depend_on_other_agents() -> None:
    alone = flow({"a": {}}, dynamic_tokens="1..999")
    in_company = flow({"b": {}, "c": {}, "a": {}}, dynamic_tokens="1..999")
    lengths = [
        next(call.dynamic_tokens for call in plan_run(loaded, 3, 7) if call.agent == "a")
        for loaded in (alone, in_company)
    ]
    assert lengths[0] == lengths[1]


@pytest.mark.parametrize("other", [(1, 7), (0, 8)], ids=["run", "seed"])
def test_plan_run_of_another_run_or_seed_draws_anew(other: tuple[int, int]) -> None:
    loaded = flow({"a": {"fan_out": 20}}, dynamic_tokens="1..999")
    assert [call.dynamic_tokens for call in plan_run(loaded, 0, 7)] != [
        call.dynamic_tokens for call in plan_run(loaded, *other)
    ]


@given(workflows(), st.integers(0, 99))
@settings(max_examples=60)
def test_plan_run_is_deterministic_ordered_and_bounded(data: dict[str, Any], run: int) -> None:
    calls = plan_run(loaded_of(data), run, 7)
    assert calls == plan_run(loaded_of(data), run, 7)
    assert len(calls) <= data["workload"]["max_calls"]
    assert [call.index for call in calls] == list(range(len(calls)))
    assert all(one < call.index for call in calls for one in call.predecessors)
    assert all(3 <= call.dynamic_tokens <= 9 for call in calls)


@given(workflows(), st.integers(0, 99))
@settings(max_examples=60)
def test_plan_run_every_call_consumed_tokens_that_satisfy_its_trigger(
    data: dict[str, Any], run: int
) -> None:
    for call in plan_run(loaded_of(data), run, 7):
        after = data["agents"][call.agent]["after"]
        assert holds(after, {feed.source for feed in call.feeds})


@given(workflows(), st.integers(0, 99))
@settings(max_examples=60)
def test_plan_run_a_token_is_consumed_once_and_one_alternative_taken(
    data: dict[str, Any], run: int
) -> None:
    loaded = loaded_of(data)
    calls = plan_run(loaded, run, 7)
    consumed = Counter(
        (feed.source, feed.calls, call.agent)
        for call in calls
        if call.part == 0
        for feed in call.feeds
    )
    assert all(count == 1 for count in consumed.values())
    share = {
        (source, out.target): out.p
        for source in (START, *loaded.graph.agents)
        for out in loaded.graph.out(source)
    }
    alternatives = Counter(
        (source, fed) for source, fed, target in consumed if share[source, target] is not None
    )
    assert all(count == 1 for count in alternatives.values())


@given(workflows(alternatives=False))
@settings(max_examples=60)
def test_plan_run_without_chance_is_the_token_game_played_by_hand(data: dict[str, Any]) -> None:
    for spec in data["agents"].values():
        spec["fan_out"] = 1
    agents, most = data["agents"], data["workload"]["max_calls"]
    names = list(agents)

    def mentioned(after: Any) -> set[str]:
        if isinstance(after, str):
            return {after}
        return set().union(*map(mentioned, after.get("any") or after.get("all")))

    tokens = {("start", name) for name in names if "start" in mentioned(agents[name]["after"])}
    played: list[str] = []
    while len(played) < most:
        wave = [
            name
            for name in names
            if holds(agents[name]["after"], {source for source, target in tokens if target == name})
        ]
        if not wave:
            break
        played += wave
        tokens = {(source, target) for source, target in tokens if target not in wave}
        tokens |= {
            (source, target)
            for source in wave
            for target in names
            if source in mentioned(agents[target]["after"])
        }
    assert speakers(plan_run(loaded_of(data), 0, 7)) == played[:most]
