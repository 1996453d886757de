"""Whether what a graph foretells comes true, by agent and client."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvflow.policy.lead import FARTHEST
from kvflow.policy.trust import _MOST, Trust

ONE, OTHER = ("app", "one"), ("app", "other")


def came_near(trust, owner, *, spoke, times=1, steps=1):
    """An agent is so near, and then speaks or is far away again."""
    for _ in range(times):
        trust.steps_changed(owner, steps)
        trust.steps_changed(owner, 0 if spoke else 10)


def test_agent_of_which_nothing_is_known_is_believed():
    assert all(Trust().believes(ONE, steps) for steps in range(1, FARTHEST + 1))


def test_agent_that_speaks_when_foretold_is_always_believed():
    trust = Trust()
    for _ in range(50):
        came_near(trust, ONE, spoke=True)
        assert trust.believes(ONE, 1)


def test_agent_that_never_speaks_when_foretold_is_soon_not_believed():
    trust = Trust()
    came_near(trust, ONE, spoke=False, times=1)
    assert trust.believes(ONE, 1)
    came_near(trust, ONE, spoke=False, times=5)
    assert not trust.believes(ONE, 1)


def test_run_that_is_over_says_nothing_of_the_agents_that_it_would_have_called():
    trust = Trust()
    for _ in range(20):
        trust.steps_changed(ONE, 1)
        trust.steps_changed(ONE, None)
    trust.steps_changed(ONE, 3)  # as in a run of which nothing was foretold
    trust.steps_changed(ONE, 0)
    assert trust.believes(ONE, 1)


def test_agent_that_speaks_out_of_turn_was_not_foretold():
    trust = Trust()
    for _ in range(10):
        trust.steps_changed(ONE, 3)
        trust.steps_changed(ONE, 0)
    assert not trust.believes(ONE, 3)
    assert trust.believes(ONE, 1)


def test_agent_that_comes_nearer_has_not_failed():
    trust = Trust()
    for _ in range(20):
        for steps in (3, 2, 1, 0):
            trust.steps_changed(ONE, steps)
    assert all(trust.believes(ONE, steps) for steps in (1, 2, 3))


def test_agent_is_judged_by_how_near_it_was():
    trust = Trust()
    for _ in range(20):  # two steps away it is heard of no more, at one it speaks
        came_near(trust, ONE, spoke=False, steps=2)
        came_near(trust, ONE, spoke=True, steps=1)
    assert trust.believes(ONE, 1)
    assert not trust.believes(ONE, 2)


def test_agent_that_is_right_again_is_believed_again():
    trust = Trust()
    came_near(trust, ONE, spoke=False, times=50)
    came_near(trust, ONE, spoke=True, times=4)
    assert trust.believes(ONE, 1)


def test_agent_of_which_little_is_known_is_judged_by_the_others_of_its_client():
    trust = Trust()
    came_near(trust, ONE, spoke=False, times=20)
    assert not trust.believes(OTHER, 1)
    assert trust.believes(("another app", "other"), 1)


def test_agent_that_proved_right_is_believed_whatever_the_others_do():
    trust = Trust()
    for _ in range(20):
        came_near(trust, ONE, spoke=False)
        came_near(trust, ONE, spoke=False)
        came_near(trust, OTHER, spoke=True)
    assert not trust.believes(ONE, 1)
    assert trust.believes(OTHER, 1)


@pytest.mark.parametrize(("alternatives", "believed"), [(2, 0.99), (3, 0.8), (10, 0.1)])
def test_few_alternatives_are_all_prefetched_for_and_many_are_not(alternatives, believed):
    trust, random = Trust(), Random(7)
    owners = [("app", f"a{i}") for i in range(alternatives)]
    told = held = 0
    for _ in range(400):
        taken = random.choice(owners)
        for owner in owners:
            trust.steps_changed(owner, 1)
            told += 1
            held += trust.believes(owner, 1)
        for owner in owners:
            trust.steps_changed(owner, 0 if owner == taken else 9)
    assert held / told >= believed if alternatives < 4 else held / told <= believed


@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 12)), max_size=60))
def test_whatever_is_said_only_stages_that_were_reached_are_judged(changes):
    trust, reached = Trust(), set()
    for agent, steps in changes:
        trust.steps_changed(("app", agent), steps)
        if steps is not None and 0 < steps <= FARTHEST:
            reached.add(steps)
    for steps in set(range(1, FARTHEST + 1)) - reached:
        assert trust.believes(ONE, steps)


def test_oldest_agents_and_clients_are_forgotten():
    trust = Trust()
    came_near(trust, ONE, spoke=False, times=9)
    for i in range(_MOST):
        came_near(trust, (f"client {i}", "one"), spoke=True)
    assert trust.believes(ONE, 1)
