import sys
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm
from support.run_table import contents
from support.tags import by

from kvflow.engine.calls import Calls
from kvflow.recipe.model import Recipe

PROMPT = array("q", range(100))
RECIPE = Recipe.model_validate(
    {
        "kvflow": 1,
        "name": "work",
        "agents": {"a": {"fixed_tokens": 40}, "b": {"fixed_tokens": 40, "after": "a"}},
        "repeat": True,
    }
)


def lines_run(function: Callable[..., object], *args: object) -> int:
    """How many lines of Python a call of it executes."""
    lines = 0

    def count(_: Any, event: str, __: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        function(*args)
    finally:
        sys.settrace(before)
    return lines


def boundary(calls: Calls, call_id: str = "c") -> int | None:
    call = calls.get(call_id)
    assert call is not None
    return call.boundary


@calm
@given(page=st.sampled_from([1, 16, 64]), fixed=st.integers(0, 300), prompt=st.integers(0, 200))
def test_boundary_is_the_greatest_whole_page_of_what_is_fixed(page, fixed, prompt):
    calls = Calls(page)
    calls.arrive("c", by("a", fixed), range(prompt))
    whole_pages = [end for end in range(0, prompt + 1, page) if end <= fixed]
    assert boundary(calls) == whole_pages[-1]


def test_boundary_of_a_call_that_does_not_say_is_not_known():
    calls = Calls(1)
    calls.arrive("c", by("a"), PROMPT)
    assert boundary(calls) is None


def test_boundary_of_a_served_agent_is_its_registered_prefix():
    calls = Calls(16)
    calls.serve(RECIPE, {"a": PROMPT[:40]})
    calls.arrive("c", by("a"), PROMPT)
    assert boundary(calls) == 32


def test_boundary_of_a_served_agent_goes_before_what_the_call_says():
    calls = Calls(1)
    calls.serve(RECIPE, {"a": PROMPT[:40]})
    calls.arrive("c", by("a", 7), PROMPT)
    assert boundary(calls) == 40


@pytest.mark.parametrize("prompt", [[*range(39), 7, 8], list(range(39)), []])
def test_prompt_that_begins_otherwise_is_counted_and_goes_by_what_the_call_says(prompt):
    calls = Calls(1)
    calls.serve(RECIPE, {"a": PROMPT[:40]})
    calls.arrive("c", by("a", 5), prompt)
    calls.arrive("d", by("a"), prompt)
    assert boundary(calls) == min(5, len(prompt))
    assert boundary(calls, "d") is None
    assert calls.prompts.other_prompt == 2


def test_prefix_that_is_served_again_takes_the_place_of_the_old_one():
    calls = Calls(1)
    calls.serve(RECIPE, {"a": PROMPT[:40]})
    calls.serve(RECIPE, {"a": PROMPT[:20]})
    calls.arrive("c", by("a"), PROMPT)
    assert boundary(calls) == 20


def test_arrive_of_a_call_that_is_in_flight_changes_nothing():
    calls = Calls(1)
    assert calls.arrive("c", by("a", 5, steps={"a": 1, "b": 4}), PROMPT) != []
    assert calls.arrive("c", by("b", 9, steps={"a": 7, "b": 7}), PROMPT) == []
    assert boundary(calls) == 5
    assert calls.counts.tagged == 1


def test_arrive_of_an_untagged_call_is_counted_and_not_kept():
    calls = Calls(1)
    assert calls.arrive("c", None, PROMPT) == []
    assert calls.get("c") is None
    assert (calls.counts.tagged, calls.counts.untagged) == (0, 1)


def test_arrive_counts_what_is_wrong_with_a_tag_by_reason():
    calls = Calls(1)
    params = by("a", 5)
    params["kvflow"] |= {"fixed_tokens": -1, "colour": "red"}
    calls.arrive("c", params, PROMPT)
    calls.arrive("d", {"kvflow": 3}, PROMPT)
    assert calls.counts.bad_hints == Counter(out_of_range=1, unknown_key=1, not_a_map=1)


@pytest.mark.parametrize("end", ["finish", "abort"])
def test_end_of_a_call_forgets_it_and_moves_its_run(end):
    calls = Calls(1)
    calls.serve(RECIPE, {})
    calls.arrive("c", by("a"), PROMPT)
    changes = getattr(calls, end)("c")
    assert changes != []
    assert calls.get("c") is None
    assert list(calls.in_flight()) == []


@pytest.mark.parametrize("end", ["finish", "abort"])
def test_end_of_an_unknown_call_changes_nothing(end):
    calls = Calls(1)
    assert getattr(calls, end)("nobody") == []


def test_finish_of_a_call_brings_the_next_agent_one_step_near():
    calls = Calls(1)
    calls.serve(RECIPE, {})
    calls.arrive("c", by("a"), PROMPT)
    calls.finish("c")
    assert calls.table.least("app", "b") == 1


def test_abort_of_a_call_leaves_steps_as_if_it_had_not_come():
    calls = Calls(1)
    calls.serve(RECIPE, {})
    calls.arrive("c", by("a"), PROMPT)
    calls.abort("c")
    assert list(calls.table.steps()) == []


def test_in_flight_lists_calls_oldest_first():
    calls = Calls(1)
    for call_id in ("x", "b", "a"):
        calls.arrive(call_id, by("a", run=call_id), PROMPT)
    calls.finish("b")
    assert [call.id for call in calls.in_flight()] == ["x", "a"]


def test_recipe_of_a_client_goes_before_the_served_one_for_that_client_alone():
    calls = Calls(1)
    calls.serve(RECIPE, {"a": PROMPT[:40]})
    calls.serve(RECIPE, {"a": PROMPT[:10]}, client="app")
    calls.arrive("c", by("a"), PROMPT)
    calls.arrive("d", by("a", client="other"), PROMPT)
    assert (boundary(calls), boundary(calls, "d")) == (10, 40)


def test_nodes_of_a_call_are_its_own_and_those_of_a_conversation_the_conversations():
    calls = Calls(1)
    talks = RECIPE.agents["a"].model_copy(update={"memory": "conversation"})
    calls.serve(RECIPE.model_copy(update={"agents": {**RECIPE.agents, "a": talks}}), {})
    for call_id, agent in (("c", "a"), ("d", "a"), ("e", "b")):
        calls.arrive(call_id, by(agent), PROMPT)
    authors = [call.author for call in calls.in_flight()]
    assert authors[0] == authors[1] == ("app", "a", None, None, "work", "run")
    assert authors[2] == "e"


def test_call_that_is_tried_again_is_not_counted_again():
    calls = Calls(1)
    for again in (False, True):
        calls.arrive("plain", None, PROMPT, again=again)
        calls.arrive("bad", {"kvflow": 3}, PROMPT, again=again)
    calls.arrive("tagged", by("a", 30), PROMPT)
    calls.abort("tagged")  # as SGLang seemed to say
    calls.arrive("tagged", by("a", 30), PROMPT, again=True)
    assert boundary(calls, "tagged") == 30
    assert (calls.counts.tagged, calls.counts.untagged) == (1, 2)
    assert calls.counts.bad_hints.total() == 1


def test_nothing_is_learned_from_a_call_that_is_refused():
    calls = Calls(1)
    for number in range(4):
        calls.arrive(f"c{number}", by("a", run=f"r{number}"), [*PROMPT, number])
    calls.arrive("refused", by("a", run="refused"), None)
    assert boundary(calls, "refused") is None
    calls.arrive("next", by("a", run="next"), [*PROMPT, 9])
    assert boundary(calls, "next") == len(PROMPT)


def test_end_of_a_run_tells_its_calls_in_flight_and_nobody_elses():
    calls = Calls(1)
    for call_id, run, client in (("c", "r", "app"), ("d", "s", "app"), ("e", "r", "other")):
        calls.arrive(call_id, by("a", run=run, client=client), PROMPT)
    calls.run_ended("app", "r")
    assert [call.id for call in calls.in_flight() if call.run_is_over] == ["c"]


def test_end_of_a_run_tells_nothing_to_calls_that_come_later_under_its_name():
    calls = Calls(1)
    calls.arrive("old", by("a"), PROMPT)
    calls.run_ended("app", "run")
    calls.arrive("new", by("a"), PROMPT)
    calls.finish("old")
    assert [call.run_is_over for call in calls.in_flight()] == [False]
    calls.run_ended("app", "run")
    assert [call.run_is_over for call in calls.in_flight()] == [True]


def test_end_of_a_run_costs_the_same_however_many_calls_of_others_are_in_flight():
    costs = []
    for count in (1, 100):
        calls = Calls(1)
        for number in range(count):
            calls.arrive(f"c{number}", by("a", run=f"r{number}"), PROMPT)
        costs.append(lines_run(calls.run_ended, "app", "r0"))
    assert costs[0] == costs[1]


@pytest.mark.parametrize("end", ["finish", "abort"])
def test_calls_that_are_over_leave_nothing_behind_whether_their_run_ended_before_or_not(end):
    calls = Calls(1)
    before = contents(calls, set())
    for run in ("ends", "stays"):
        calls.arrive(run, by("a", run=run), None)
    calls.run_ended("app", "ends")
    for run in ("ends", "stays"):
        getattr(calls, end)(run)
    assert list(calls.drain_moved().values()) == [{}, {}]
    assert contents(calls, set()) == before
