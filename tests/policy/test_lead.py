"""When loads start: what is learned of the link and of agents, in forwards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvflow.policy.lead import FARTHEST, Approach, Foresight, LinkPace, Queue, due

ONE = ("app", "one")


def test_link_of_which_nothing_is_known_foretells_nothing():
    pace = LinkPace()
    assert (pace.forwards(100), pace.tokens(10)) == (None, None)


def test_link_carries_what_it_carried():
    pace = LinkPace()
    pace.loaded(1000, forwards=10)
    assert pace.forwards(500) == 6  # the end is noted a forward later
    assert pace.tokens(32) == 3200


def test_copy_that_came_within_a_forward_counts_as_one():
    pace = LinkPace()
    pace.loaded(1000, forwards=0)
    assert pace.tokens(1) == 1000


def test_copy_during_which_nothing_ran_tells_only_that_the_link_is_no_faster():
    pace = LinkPace()
    pace.loaded(1000, forwards=10)
    pace.loaded(1000, forwards=5, idle=True)
    assert pace.tokens(1) == 100
    pace.loaded(1000, forwards=20, idle=True)
    assert pace.tokens(1) == 50


def test_copy_that_was_waited_for_lowers_what_the_link_is_thought_to_carry_but_not_for_ever():
    pace = LinkPace()
    carried = []
    for _ in range(9):
        pace.loaded(1000, forwards=10, waited=True)
        carried.append(pace.tokens(100))
    assert carried == sorted(carried, reverse=True)
    assert carried[0] == 8750
    assert carried[-1] == 5000


@given(st.floats(1, 1e4), st.lists(st.floats(0.5, 2), max_size=20))
def test_link_pace_stays_within_what_was_seen(first, changes):
    pace, seen = LinkPace(), [first, *(first * change for change in changes)]
    for tokens_a_forward in seen:
        pace.loaded(round(tokens_a_forward * 1000), forwards=1000)
    assert min(seen) * 1000 - 2 <= pace.tokens(1000) <= max(seen) * 1000 + 1


def test_link_pace_follows_a_link_that_has_become_slower():
    pace = LinkPace()
    pace.loaded(1000, forwards=1)
    for _ in range(30):
        pace.loaded(1000, forwards=10)
    assert pace.tokens(1) == pytest.approx(100, abs=1)


@given(
    agents=st.integers(2, FARTHEST),
    forwards=st.integers(1, 50),
    rounds=st.integers(2, 4),
    into=st.data(),
)
def test_agent_of_a_regular_cycle_is_foretold_exactly(agents, forwards, rounds, into):
    foresight, now = Foresight(), 0
    owners = [("app", f"a{i}") for i in range(agents)]

    def steps(owner: int, speaks: int) -> int:
        return (owner - speaks) % agents

    for turn in range(rounds * agents):
        now = turn * forwards
        for i, owner in enumerate(owners):
            foresight.steps_changed(owner, steps(i, turn % agents), now)
    last = (rounds * agents - 1) % agents
    later = into.draw(st.integers(0, forwards))
    for i, owner in enumerate(owners):
        away = steps(i, last)
        expected = away * forwards - later if away else None
        assert foresight.approach(owner, now + later).left == expected


def test_agent_that_never_spoke_is_not_foretold():
    foresight = Foresight()
    foresight.steps_changed(ONE, 1, 0)
    assert foresight.approach(ONE, 5) == Approach()
    assert foresight.approach(("app", "unheard of"), 5) == Approach()


def speak_after(foresight: Foresight, forwards: int, *, now: int = 0, steps: int = 1) -> None:
    foresight.steps_changed(ONE, steps, now)
    foresight.steps_changed(ONE, 0, now + forwards)


def left_at_once(foresight: Foresight, steps: int = 1) -> float | None:
    foresight.steps_changed(ONE, steps, 1000)
    return foresight.approach(ONE, 1000).left


def test_sooner_than_before_is_believed_at_once_and_later_only_slowly():
    foresight = Foresight()
    speak_after(foresight, 80)
    speak_after(foresight, 16)
    assert left_at_once(foresight) == 16
    speak_after(foresight, 80)
    assert left_at_once(foresight) == 16 + (80 - 16) / 8


def test_agent_that_moves_away_again_forgets_how_near_it_was():
    foresight = Foresight()
    foresight.steps_changed(ONE, 1, 0)
    foresight.steps_changed(ONE, 3, 100)
    foresight.steps_changed(ONE, 0, 110)
    assert left_at_once(foresight, steps=3) == 10
    foresight.steps_changed(ONE, None, 1000)
    assert left_at_once(foresight, steps=1) is None


def test_agent_too_far_away_is_not_foretold():
    foresight = Foresight()
    speak_after(foresight, 10, steps=FARTHEST + 1)
    assert left_at_once(foresight, FARTHEST + 1) is None


def test_agent_that_is_overdue_has_less_than_nothing_left():
    foresight = Foresight()
    speak_after(foresight, 10)
    foresight.steps_changed(ONE, 1, 100)
    assert foresight.approach(ONE, 115).left == -5


def test_approach_tells_how_long_it_takes_from_a_step_nearer():
    foresight = Foresight()
    foresight.steps_changed(ONE, 2, 0)
    foresight.steps_changed(ONE, 1, 30)
    foresight.steps_changed(ONE, 0, 50)
    foresight.steps_changed(ONE, 2, 100)
    assert foresight.approach(ONE, 105) == Approach(left=45, from_nearer=20)


def link_of(tokens_a_forward: int) -> LinkPace:
    link = LinkPace()
    link.loaded(100 * tokens_a_forward, forwards=100)
    return link


UNKNOWN = LinkPace()


@pytest.mark.parametrize(
    ("approach", "link"),
    [(Approach(), UNKNOWN), (Approach(), link_of(10)), (Approach(9, 4), UNKNOWN)],
)
def test_load_of_which_too_little_is_known_starts_by_steps_alone(approach, link):
    assert [due(50, steps, 2, approach, link) for steps in (1, 2, 3)] == [50, 50, 0]


def test_load_within_the_depth_starts_unless_it_would_stand_around():
    link = link_of(10)  # 90 tokens: a lead of 10
    starts = [bool(due(90, 1, 1, Approach(left), link)) for left in (100, 45, 44, -3)]
    assert starts == [False, False, True, True]


def test_load_beyond_the_depth_is_what_the_link_cannot_carry_later():
    link = link_of(10)
    last_moment = {"left": 21, "from_nearer": 20}
    assert due(180, 2, 1, Approach(**last_moment), link) == 0  # 18 forwards carry 180
    assert due(250, 2, 1, Approach(**last_moment), link) == 70
    assert due(250, 2, 1, Approach(**last_moment), link, Queue(now=90)) == 70
    assert due(250, 2, 1, Approach(**last_moment), link, Queue(now=90, then=90)) == 160
    assert due(250, 2, 1, Approach(**last_moment), link, Queue(now=900, then=900)) == 250


def test_load_beyond_the_depth_starts_when_it_would_be_late_otherwise():
    link = link_of(10)  # 70 tokens: a lead of 8
    parts = [due(250, 2, 1, Approach(20 + before, 20), link) for before in (20, 13, 12, 0)]
    assert parts == [0, 0, 70, 70]
    queued = [due(250, 2, 1, Approach(20 + before, 20), link, Queue(100)) for before in (28, 27)]
    assert queued == [0, 70]


@given(
    st.integers(1, 999),
    st.integers(1, 9),
    st.integers(0, 9),
    st.builds(Approach, st.none() | st.floats(-9, 99), st.none() | st.floats(0, 99)),
    st.sampled_from([UNKNOWN, link_of(1), link_of(10), link_of(100)]),
    st.builds(Queue, st.integers(0, 999), st.integers(0, 999)),
)
def test_part_that_is_due_is_a_part(tokens, steps, depth, approach, link, queue):
    part = due(tokens, steps, depth, approach, link, queue)
    assert 0 <= part <= tokens
    if steps <= depth:
        assert part in (0, tokens)


@given(st.integers(1, 999), st.floats(-9, 99), st.floats(0, 99), st.integers(0, 999))
def test_load_that_is_due_stays_due_until_it_starts(tokens, left, from_nearer, then):
    link, queue = link_of(10), Queue(then, then)
    for steps in (1, 2):
        if due(tokens, steps, 1, Approach(left, from_nearer), link, queue):
            assert due(tokens, steps, 1, Approach(left - 1, from_nearer), link, queue)
