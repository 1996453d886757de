"""Prefetch where there is little room, and in parts."""

import pytest
from support.audit import check_slots
from support.going_round import AGENTS, ANSWER, GoingRound

pytestmark = pytest.mark.engine

ROUNDS = 3


def go_round(made: GoingRound) -> GoingRound:
    """Some rounds of all agents, after which nothing is held and every call was served."""
    for turn in range(ROUNDS * AGENTS):
        made.serve(turn)
    made.cache.sanity_check()
    check_slots(made.mini)
    assert made.cache.protected_size() == 0
    assert len(made.mini.hits) == ROUNDS * AGENTS
    return made


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
