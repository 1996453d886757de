"""What conversations leave in a real cache: their tails are kept, and let go when they are over."""

from typing import Any

import pytest
from support.mini_scheduler import MiniScheduler
from support.prefixes import PREFIX, evict_all, node_at, on_host, scheduler, steps_at
from support.tags import by

from kvflow.frames import Why

pytestmark = pytest.mark.engine

STEPS = {"a": 2, "b": 1}
TURNS = [[*PREFIX, *range(500, 500 + 20 * turn)] for turn in (1, 2, 3)]


def talk(
    mini: MiniScheduler,
    *turns: list[int],
    run: str = "run",
    final: bool = False,
    steps: dict[str, int] | None = STEPS,
) -> None:
    """An agent goes on from its own prompts; its answers of one token are not asked again."""
    for turn in turns:
        mini.serve(turn, by("a", 30, run=run, steps=steps, final=final), answer=1)


def why(mini: MiniScheduler, token_ids: list[int]) -> Any:
    node = node_at(mini.cache, token_ids)
    return None if node is None else mini.cache.tree_core.why(node)


def test_tail_of_a_conversation_ranks_with_its_agent():
    mini = scheduler()
    talk(mini, *TURNS[:2])
    assert why(mini, TURNS[1]) is Why.STEPS
    talk(mini, TURNS[2])
    assert why(mini, TURNS[2]) is Why.STEPS


def test_tail_ranks_by_the_steps_of_its_own_run():
    mini = scheduler()
    others = [[*PREFIX, *range(800, 800 + 20 * turn)] for turn in (1, 2)]
    talk(mini, *TURNS[:2], run="far", steps={"a": 7})
    talk(mini, *others, run="near", steps={"a": 1})
    assert (steps_at(mini.cache, TURNS[1]), steps_at(mini.cache, others[1])) == (7, 1)
    assert steps_at(mini.cache, PREFIX) == 1
    mini.cache.end_run("app", "near")
    assert (steps_at(mini.cache, TURNS[1]), steps_at(mini.cache, PREFIX)) == (7, 7)


def test_call_of_a_chat_brings_no_other_chat_nearer():
    mini = scheduler()
    others = [[*PREFIX, *range(800, 800 + 20 * turn)] for turn in (1, 2, 3)]
    talk(mini, *TURNS[:2], run="quiet", steps=None)
    talk(mini, *others[:2], run="busy", steps=None)
    mini.arrive(others[2], by("a", 30, run="busy"), answer=4)
    mini.prefill()
    assert steps_at(mini.cache, TURNS[1]) == mini.cache.untagged_steps
    assert steps_at(mini.cache, others[1]) == 0
    mini.drain()


def test_tail_of_an_agent_that_begins_anew_each_time_is_spent():
    mini = scheduler()
    talk(mini, [*PREFIX, *[1] * 20], [*PREFIX, *[2] * 20])
    assert why(mini, [*PREFIX, *[2] * 20]) is Why.SPENT


def test_tail_of_a_conversation_goes_to_the_host_as_a_prefix_does():
    mini = scheduler()
    talk(mini, *TURNS)
    mini.finish_copies()
    assert on_host(mini.cache) >= len(TURNS[2])


def test_tail_that_the_conversation_did_not_go_on_from_is_spent():
    mini = scheduler()
    talk(mini, *TURNS[:2])
    other = [*TURNS[0], *[9] * 30]
    talk(mini, other)
    assert why(mini, TURNS[1]) is Why.SPENT


def test_tail_of_a_run_that_is_over_is_spent():
    mini = scheduler()
    talk(mini, *TURNS[:2])
    talk(mini, TURNS[2], final=True)
    assert why(mini, TURNS[2]) is Why.SPENT
    assert why(mini, PREFIX) is Why.STEPS


def test_tail_of_another_run_of_the_same_agent_stays():
    mini = scheduler()
    talk(mini, *TURNS[:2])
    talk(mini, [*PREFIX, *[3] * 20], [*PREFIX, *[3] * 40], run="second", final=True)
    assert why(mini, TURNS[1]) is Why.STEPS


def test_tail_that_another_call_has_found_is_not_spent_with_its_run():
    mini = scheduler()
    talk(mini, *TURNS[:2])
    mini.serve([*TURNS[1], 8], answer=1)
    mini.cache.end_run("app", "run")
    assert why(mini, TURNS[1]) is Why.UNTAGGED


def test_tails_are_evicted_as_their_agent_speaks_later_than_others():
    mini = scheduler()
    mini.serve([50] * 30, by("b", 30, steps=STEPS), answer=1)
    talk(mini, *TURNS[:2])
    order = evict_all(mini.cache)
    assert order[-1] == [50] * 30
    assert order.index(TURNS[1]) < order.index(PREFIX)


def test_flush_forgets_tails_and_the_conversation_goes_on():
    mini = scheduler()
    talk(mini, *TURNS[:2])
    mini.flush()
    talk(mini, TURNS[2])
    assert why(mini, TURNS[2]) is Why.STEPS


def test_memory_of_tails_of_ever_new_runs_is_bounded():
    mini = scheduler()
    for number in range(300):
        own = [*PREFIX, *range(500 + number, 520 + number)]
        talk(mini, own, [*own, 9, *[number] * 20], run=f"run{number}")
    tails = mini.cache.tails
    standing = len(mini.cache.tree_core.ranks._ends)
    assert len(tails._by_run) <= 2 * standing + 64


@pytest.mark.parametrize("how", ["answered", "aborted"])
def test_tail_of_a_run_that_ended_without_its_last_call_is_spent(how):
    mini = scheduler()
    talk(mini, *TURNS[:2])
    last = mini.arrive(TURNS[2], by("a", 30, run="run", steps=STEPS), answer=4)
    mini.prefill()
    [tail] = mini.cache.tails.of_run("app", "run")
    mini.cache.end_run("app", "run", expect_next=False)
    if how == "aborted":
        mini.abort(last)
    mini.drain()
    assert mini.cache.tree_core.ranks.end(tail) is None
    assert why(mini, TURNS[1]) is Why.SPENT


def test_turn_that_went_away_leaves_nothing_of_the_conversations():
    mini = scheduler()
    talk(mini, *TURNS[:2])
    last = mini.arrive(TURNS[2], by("a", 30, run="run", steps=STEPS), answer=4)
    mini.prefill()
    mini.abort(last)
    mini.drain()
    [tail] = mini.cache.tails.of_run("app", "run")
    core = mini.cache.tree_core
    end = core.ranks.end(tail)
    authored = [node for node, author in core._creators.items() if author == tail]
    assert set(authored) <= {node.id for node in core.path(end)}
    assert why(mini, TURNS[1]) is Why.STEPS
