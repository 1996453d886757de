"""Hints that prove wrong are not prefetched for, so that they cost no more than having none."""

from random import Random

import pytest
from support.audit import check_slots
from support.going_round import GoingRound
from support.slow_link import DECODE, PREFILL, SlowLink

from kvflow.engine.snapshot import take
from kvflow.policy import trust

pytestmark = pytest.mark.engine

AGENTS = 10
ANSWER = 16
CALL = PREFILL + (ANSWER - 1) * DECODE
ROUNDS = 6
AS_MUCH = 0.02  # of the time, by which waiting may differ


def astray(turns: int) -> list[int]:
    """Agents that speak one after another, never the one that was said to be next."""
    random, said = Random(11), [0]
    while len(said) < turns:
        last = said[-1]
        said.append(random.choice([a for a in range(AGENTS) if (a - last) % AGENTS > 1]))
    return said


def made(mode: str = "prefetch") -> tuple[GoingRound, SlowLink]:
    world = GoingRound(mode=mode, tokens=int(4.3 * 64), agents=AGENTS)
    return world, SlowLink(world, CALL)


def wasted_and_waited(mode: str = "prefetch") -> tuple[int, float]:
    """Of the last rounds: tokens prefetched in vain, and the share of the time that was waited."""
    world, link = made(mode)
    turns = astray(ROUNDS * AGENTS)
    for turn in turns[: 3 * AGENTS]:
        link.call(turn, ANSWER)
    issued, now, waited = world.outcomes.issued, link.now, link.waited
    for turn in turns[3 * AGENTS :]:
        link.call(turn, ANSWER)
    share = (link.waited - waited) / (link.now - now)
    link.end()
    check_slots(world.mini)
    return world.outcomes.issued - issued, share


@pytest.fixture(scope="module")
def waited_without() -> float:
    """What is waited where nothing is prefetched."""
    return wasted_and_waited("evict")[1]


def test_hints_that_are_always_wrong_are_soon_prefetched_for_no_more(waited_without):
    issued, waited = wasted_and_waited()
    assert issued < 64  # one prefix
    assert waited <= waited_without + AS_MUCH


def test_wrong_hints_cost_a_lot_where_they_are_believed(waited_without, monkeypatch):
    """The mutation that shows that the test above can fail."""
    monkeypatch.setattr(trust, "_LEAST", 0.0)
    issued, waited = wasted_and_waited()
    assert issued > 10 * 64
    assert waited > waited_without + AS_MUCH


def test_hints_that_are_right_again_are_prefetched_for_again():
    world, link = made()
    turns = astray(3 * AGENTS)
    for turn in turns:
        link.call(turn, ANSWER)
    issued, used = world.outcomes.issued, world.outcomes.used
    for turn in range(4 * AGENTS):
        link.call(turns[-1] + 1 + turn, ANSWER)
    assert world.outcomes.issued - issued > AGENTS * 64
    assert world.outcomes.used - used > AGENTS * 64
    link.end()


def test_frame_says_which_agents_are_not_believed_and_how_often():
    world, link = made()
    turns = astray(4 * AGENTS)
    for turn in turns:
        link.call(turn, ANSWER)
    frame = take(world.mini, 0)
    nearest = next(one for one in frame.agents if one.steps == 1)
    assert nearest.doubted
    assert not any(one.doubted for one in frame.agents if one.steps in (None, 0, 10))
    assert frame.counters.doubted_hints > 2 * AGENTS
    link.end()


def test_right_hints_are_never_doubted_however_runs_end():
    world, link = made()
    for turn in range(4 * AGENTS):
        link.call(turn, ANSWER)
        if turn % AGENTS == AGENTS - 1:
            world.cache.end_run("app", "run", expect_next=False)
    assert world.cache.prefetcher.doubted == 0
    link.end()
