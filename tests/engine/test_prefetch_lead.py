"""Prefetch learns when to start: over a slow link sooner, over a fast one no sooner than needed.

Ten agents in a cycle, with room for 4.3 of their prefixes, in a time of their own.
"""

import pytest
from support.audit import check_slots
from support.going_round import GoingRound
from support.slow_link import DECODE, PREFILL, SlowLink

pytestmark = pytest.mark.engine

AGENTS = 10
ANSWER = 16
CALL = PREFILL + (ANSWER - 1) * DECODE
ROUNDS = 8


def cycle(load: float, farthest: int | None = None) -> tuple[GoingRound, SlowLink]:
    made = GoingRound(mode="prefetch", tokens=int(4.3 * 64), agents=AGENTS)
    if farthest is not None:
        made.cache.prefetcher._farthest = farthest
    return made, SlowLink(made, load)


def waited_in_the_end(load: float, farthest: int | None = None) -> float:
    """Share of the last three rounds that was spent waiting for loads."""
    made, link = cycle(load, farthest)
    for turn in range((ROUNDS - 3) * AGENTS):
        link.call(turn, ANSWER)
    now, waited = link.now, link.waited
    for turn in range(3 * AGENTS):
        link.call(turn, ANSWER)
    share = (link.waited - waited) / (link.now - now)
    link.end()
    made.cache.sanity_check()
    check_slots(made.mini)
    return share


@pytest.mark.parametrize("load", [CALL // 10, CALL // 2, CALL + 1])
def test_loads_of_up_to_a_call_are_hidden(load):
    assert waited_in_the_end(load) < 0.01


def test_loads_of_a_call_are_not_hidden_by_steps_alone():
    """The mutation that shows that the test above can fail."""
    assert waited_in_the_end(CALL + 1, farthest=1) > 0.1


def test_loads_that_take_longer_than_calls_are_hidden_as_far_as_the_link_can_carry_them():
    load = 1.25 * CALL
    assert waited_in_the_end(load) < 0.6 * waited_in_the_end(load, farthest=1)


def test_load_waits_while_its_agent_takes_longer_than_loads_do():
    long = 64
    made, link = cycle(load=4)
    for turn in range(3 * AGENTS):
        link.call(turn, long)
    missing = made.absent()
    for turn in range(AGENTS + missing - 1):
        link.call(turn, long)
    assert made.outcomes.late == 0
    made.cache.switch("evict")
    before = made.outcomes.issued
    made.arrive(missing - 1, answer=long)
    made.mini.prefill()
    assert not made.on_device(missing)
    made.cache.switch("prefetch")
    forwards = 0
    while made.outcomes.issued == before:
        made.mini.decode()
        made.cache.check_hicache_events()
        forwards += 1
    assert long // 2 < forwards < long - 8
    link.end()
