import pytest
from support.prefixes import PREFIX, PROMPT, TAIL, evict_all, node_at, scheduler, steps_at
from support.real_cache import nodes
from support.tags import by

from kvflow.frames import Why

pytestmark = pytest.mark.engine


def test_tail_and_answer_of_a_finished_call_go_before_any_fixed_prefix_however_far():
    mini = scheduler()
    mini.serve([*PREFIX, 1], by("far", 30, steps={"far": 64, "near": 1}))
    mini.serve([50] * 30 + TAIL, by("near", 30, steps={"far": 64, "near": 1}))
    order = evict_all(mini.cache)
    assert order[-2:] == [PREFIX, [50] * 30]
    assert all(len(end) > 30 for end in order[:-2])


def test_tail_of_a_finished_call_goes_before_an_older_untagged_prompt():
    mini = scheduler()
    mini.serve([60] * 10, answer=1)
    mini.serve(PROMPT, by("a", 30, steps={"a": 5}), answer=1)
    assert evict_all(mini.cache) == [PROMPT, PREFIX, [60] * 10]


def test_tail_that_another_call_has_matched_is_not_spent():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30, steps={"a": 9}), answer=1)
    mini.serve([*PROMPT, 8], answer=1)
    tail = node_at(mini.cache, PROMPT)
    assert mini.cache.tree_core.why(tail) is Why.UNTAGGED


def test_tail_of_a_call_whose_prefix_is_not_known_is_not_spent():
    mini = scheduler()
    mini.serve(PROMPT, by("a"))
    assert {mini.cache.tree_core.why(node) for node in nodes(mini.cache)} == {Why.UNTAGGED}


def test_tail_of_an_aborted_call_is_not_spent():
    mini = scheduler()
    req = mini.arrive(PROMPT, by("a", 30))
    mini.prefill()
    mini.abort(req)
    assert Why.SPENT not in {mini.cache.tree_core.why(node) for node in nodes(mini.cache)}
    assert list(mini.cache.calls.in_flight()) == []


def test_tail_of_a_retracted_call_is_spent_only_when_the_call_is_over():
    mini = scheduler()
    req = mini.arrive(PROMPT, by("a", 30))
    mini.prefill()
    mini.retract(req)
    core = mini.cache.tree_core
    assert Why.SPENT not in {core.why(node) for node in nodes(mini.cache)}
    assert [call.id for call in mini.cache.calls.in_flight()] == [req.rid]
    mini.drain()
    tail = node_at(mini.cache, PROMPT)
    assert core.why(tail) is Why.SPENT


def test_prefix_of_an_agent_whose_distance_grows_ranks_later():
    mini = scheduler()
    other = [50] * 30
    mini.serve(PROMPT, by("a", 30, steps={"a": 1, "b": 3}), answer=1)
    mini.serve([*other, 1], by("b", 30, steps={"a": 1, "b": 3}), answer=1)
    mini.serve([7], by("c", steps={"a": 8, "b": 3}), answer=1)
    order = evict_all(mini.cache)
    assert order.index(PREFIX) < order.index(other)


def test_prefix_of_an_agent_with_a_call_in_flight_is_nearest_of_all():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30, steps={"a": 9}), answer=1)
    mini.arrive([7], by("a", run="other", steps={"a": 9}))
    assert steps_at(mini.cache, PREFIX) == 0


def test_prefix_of_an_agent_without_a_live_run_ranks_as_untagged():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30, steps={"a": 1}, final=True), answer=1)
    assert steps_at(mini.cache, PREFIX) == mini.cache.untagged_steps


def test_run_that_ends_leaves_ranks_as_they_were_before_it_began():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30, steps={"a": 5}), answer=1)
    node = node_at(mini.cache, PREFIX)
    before = mini.cache.tree_core.rank(node)
    mini.serve([7], by("b", run="second", steps={"a": 1}), answer=1)
    assert steps_at(mini.cache, PREFIX) == 1
    mini.serve([7], by("b", run="second", steps={"a": 1}, final=True), answer=1)
    assert mini.cache.tree_core.rank(node) == before


def test_run_that_expires_leaves_ranks_as_they_were_before_it_began():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30, steps={"a": 5}), answer=1)
    node = node_at(mini.cache, PREFIX)
    before = mini.cache.tree_core.rank(node)
    silent_ticks = mini.cache.calls.table.limits.silent_ticks
    mini.serve([7], by("b", run="second", steps={"a": 1}), answer=1)
    for tick in range(silent_ticks):
        if tick == silent_ticks // 2:  # the first run is still alive when the second expires
            mini.serve([7], by("b", steps={"a": 5}), answer=1)
        mini.cache.tick()
    assert mini.cache.tree_core.rank(node) == before
    for _ in range(silent_ticks):
        mini.cache.tick()
    assert steps_at(mini.cache, PREFIX) == mini.cache.untagged_steps
