"""Prefetch where there is little room, and in parts."""

import pytest
from support.audit import check_slots
from support.going_round import AGENTS, ANSWER, GoingRound

from kvflow.engine import prefetch

pytestmark = pytest.mark.engine

ROUNDS = 3


def go_round(made: GoingRound) -> GoingRound:
    """Some rounds of all agents, after which nothing is held and every call was served."""
    calls = len(made.mini.hits) + ROUNDS * made.agents
    for turn in range(ROUNDS * made.agents):
        made.serve(turn)
    made.cache.sanity_check()
    check_slots(made.mini)
    assert made.cache.protected_size() == 0
    assert len(made.mini.hits) == calls
    return made


def speak(made: GoingRound, steps: dict[int, int]) -> None:
    """An agent whose prefix is there speaks and says who is how near; two passes go by.

    In the first of them the link is left to the call.
    """
    speaker = next(agent for agent in range(made.agents) if made.on_device(agent))
    made.arrive(speaker, ANSWER, steps={f"a{agent}": near for agent, near in steps.items()})
    made.mini.prefill()
    for _ in range(2):
        made.cache.check_hicache_events()


@pytest.mark.parametrize("page", [1, 16, 64])
def test_every_prefix_is_there_when_its_agent_speaks_at_any_page_size(page):
    made = go_round(GoingRound(page))
    assert [hit[1:] for hit in made.mini.hits[-AGENTS:]] == [(made.fixed, 0)] * AGENTS
    assert made.outcomes.issued > 0
    assert made.outcomes.late == 0


@pytest.mark.parametrize(
    ("page", "most", "copies"), [(1, 64, 1), (1, 40, 2), (1, 16, 4), (16, 40, 2), (64, 5, 4)]
)
def test_prefix_longer_than_one_copy_arrives_in_parts_of_whole_pages(page, most, copies):
    made = go_round(GoingRound(page, "evict", prefetch_tokens=most))
    missing = made.absent()
    made.cache.switch("prefetch")
    made.arrive(missing - 1, ANSWER)
    made.mini.prefill()
    arrived = []
    for _ in range(copies + 1):
        made.mini.acknowledge()
        arrived.append(made.on_device(missing))
    assert made.outcomes.operations == copies
    assert arrived == sorted(arrived)
    assert arrived[-1] == made.fixed
    made.mini.drain()


def test_prefix_of_which_a_part_has_arrived_is_loaded_whole_by_the_call_that_wants_it():
    made = go_round(GoingRound(1, "evict", prefetch_tokens=16))
    missing = made.absent()
    made.cache.switch("prefetch")
    made.arrive(missing - 1, ANSWER)
    made.mini.acknowledge()  # as the scheduler does before each prefill
    made.mini.prefill()
    made.mini.acknowledge()
    made.arrive(missing, answer=1)
    made.mini.prefill()
    _, on_device, on_host = made.mini.hits[-1]
    assert on_device >= 16
    assert on_device + on_host == made.fixed
    made.mini.drain()


def test_pool_that_holds_one_prefix_serves_and_prefetches_nothing():
    made = go_round(GoingRound(1, tokens=64 + ANSWER))
    assert made.outcomes.issued == 0


def test_prefix_longer_than_what_may_be_on_its_way_is_left_to_its_call():
    made = go_round(GoingRound(1, tokens=2 * 64 - 2))
    assert made.outcomes.issued == 0


def test_host_pool_that_is_too_small_for_all_serves_on():
    made = go_round(GoingRound(1, host_ratio=0.5))
    assert made.cache.cache_controller.mem_pool_host.size < 2 * made.fixed


def test_prefixes_that_are_needed_as_soon_are_loaded_by_one_copy():
    made = go_round(GoingRound(1, "evict", agents=8, tokens=6 * 64 + 64))
    absent = [agent for agent in range(8) if not made.on_device(agent)][:2]
    made.cache.switch("prefetch")
    speak(made, dict.fromkeys(absent, 1))
    loads = made.cache.traffic.h2d_operations
    made.mini.acknowledge()
    assert [made.on_device(agent) for agent in absent] == [made.fixed] * 2
    assert made.outcomes.operations == 2
    assert made.cache.traffic.h2d_operations == loads + 1
    made.mini.drain()


def test_prefix_of_which_a_copy_has_no_room_for_a_part_begins_the_next_one_whole():
    made = go_round(GoingRound(1, "evict", agents=8, tokens=6 * 64 + 64, prefetch_tokens=64 + 7))
    absent = [agent for agent in range(8) if not made.on_device(agent)][:2]
    made.cache.switch("prefetch")
    speak(made, dict.fromkeys(absent, 1))
    made.mini.finish_copies()
    made.cache.check_hicache_events()
    made.mini.finish_copies()
    made.cache.check_hicache_events()
    assert [made.on_device(agent) for agent in absent] == [made.fixed] * 2
    assert [len(list(made.cache.tree_core.path(made.end_of(agent)))) for agent in absent] == [1, 1]
    made.mini.drain()


def test_pass_looks_at_few_of_many_agents_however_often_steps_change(monkeypatch):
    made = go_round(GoingRound(1, "prefetch"))
    prefetcher, looks = made.cache.prefetcher, []
    for number in range(300):
        prefetcher.note_steps(("app", f"b{number}"), 1)
    monkeypatch.setattr(prefetch, "due", lambda *_: looks.append(1) or 0)
    for _ in range(20):
        looks.clear()
        prefetcher.note_steps(("app", "b7"), 1)
        prefetcher.plan(())
        assert 0 < len(looks) <= 64


def test_no_more_is_on_its_way_at_once_than_half_of_the_pool():
    made = go_round(GoingRound(1, "evict", agents=8, tokens=5 * 64))
    absent = [agent for agent in range(8) if not made.on_device(agent)][:3]
    made.cache.switch("prefetch")
    speak(made, dict.fromkeys(absent, 1))
    assert len(absent) * made.fixed > 5 * 64 / 2
    assert made.outcomes.operations == 2
    made.mini.drain()


def test_load_that_the_cache_refuses_leaves_nothing_behind(monkeypatch):
    made = go_round(GoingRound(1, "evict"))
    missing = made.absent()
    made.cache.switch("prefetch")
    with monkeypatch.context() as refusing:
        refusing.setattr(made.cache, "load_back", lambda *_, **__: False)
        speak(made, {missing: 1})
    assert (made.outcomes.issued, made.cache.prefetcher._copy) == (0, None)
    assert not made.cache.ongoing_load_back
    made.mini.drain()
    go_round(made)
