from typing import Any

import pytest
from support.audit import check_slots
from support.prefixes import PREFIX, PROMPT, mark_end, scheduler, steps_at
from support.real_cache import nodes, tokens_to
from support.tags import by

pytestmark = pytest.mark.engine


def lengths(cache: Any) -> list[int]:
    """Where nodes end, in tokens from the root."""
    return sorted(len(tokens_to(node)) for node in nodes(cache))


@pytest.mark.parametrize(
    ("page", "fixed", "boundary"),
    [
        (1, 30, 30),  # inside what would be one node
        (16, 32, 32),  # at the end of a page
        (16, 30, 16),  # inside a page: whole pages only
        (16, 5, 0),  # less than a page
        (1, 0, 0),
        (1, 1000, 35),  # longer than the prompt: all of it
        (16, 1000, 32),
        (1, 35, 35),  # the whole prompt
        (1, None, 0),  # not known
    ],
)
def test_mark_of_a_call_sits_where_its_fixed_prefix_ends_in_whole_pages(page, fixed, boundary):
    mini = scheduler(page)
    mini.serve(PROMPT, by("a", fixed))
    assert mark_end(mini.cache) == boundary
    assert not boundary or boundary in lengths(mini.cache)
    mini.cache.sanity_check()


def test_mark_of_a_prompt_that_came_in_chunks_sits_inside_a_later_chunk():
    mini = scheduler(chunk=8)
    mini.serve(PROMPT, by("a", 30))
    assert mark_end(mini.cache) == 30
    assert {8, 16, 24, 30, 32, 35} <= set(lengths(mini.cache))


@pytest.mark.parametrize(("first", "second"), [(30, 10), (10, 30)])
def test_mark_follows_the_boundary_of_the_agents_latest_call(first, second):
    mini = scheduler()
    mini.serve(PROMPT, by("a", first))
    mini.serve([*PREFIX, 9], by("a", second))
    assert mark_end(mini.cache) == second
    core = mini.cache.tree_core
    marked = sum(len(node.key) for node in nodes(mini.cache) if core.ranks.is_marked(node.id))
    assert marked == second


def test_mark_is_kept_apart_by_namespace():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    mini.serve(PROMPT, by("a", 20), extra_key="lora")
    assert mark_end(mini.cache) == 30
    assert mark_end(mini.cache, key="lora") == 20


def test_mark_is_kept_apart_by_client():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30, steps={"a": 2}))
    mini.serve(PROMPT, by("a", 30, client="other", steps={"a": 5}))
    assert mark_end(mini.cache) == mark_end(mini.cache, client="other") == 30
    mini.serve([7], by("b", client="other", steps={"a": 1}))
    mini.serve([7], by("b", client="other", steps={"a": 9}))
    assert steps_at(mini.cache, PREFIX) == 2  # the least of both


def test_mark_is_not_set_by_an_untagged_call():
    mini = scheduler()
    mini.serve(PROMPT)
    assert lengths(mini.cache) == [len(PROMPT), len(PROMPT) + 3]


def test_flush_forgets_all_that_was_known_of_the_tree():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30, steps={"a": 1}))
    mini.flush()
    core = mini.cache.tree_core
    assert len(mini.cache.marks) == 0
    assert mark_end(mini.cache) == 0
    assert core._creators == core._loading == {}
    assert len(core.device_order) == len(core.host_order) == 0
    check_slots(mini)


def test_flush_leaves_steps_that_the_next_prefix_ranks_by():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30, steps={"a": 7}))
    mini.flush()
    mini.serve(PROMPT, by("a", 30, steps={"a": 7}))
    assert steps_at(mini.cache, PREFIX) == 7


def test_call_that_waited_through_a_flush_is_served():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    req = mini.arrive(PROMPT, by("a", 30))
    mini.flush()
    mini.drain()
    assert req.finished()
    assert mark_end(mini.cache) == 30


def test_late_events_of_calls_from_before_a_flush_change_nothing():
    mini = scheduler()
    old = mini.serve(PROMPT, by("a", 30, steps={"a": 3}))
    waiting = mini.arrive(PROMPT, by("a", 30, steps={"a": 3}))
    mini.flush()
    mini.abort(waiting)
    mini.cache.on_release(old, checkpointed=True)
    mini.cache.tick()
    assert list(nodes(mini.cache)) == []
    assert list(mini.cache.calls.in_flight()) == []
