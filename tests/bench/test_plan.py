from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.bench.arms import ARMS
from kvflow.bench.plan import Effort, Pace, turns

some_arms = st.lists(st.sampled_from(list(ARMS.values())), min_size=1, unique=True)
sharing = st.fixed_dictionaries({name: st.sampled_from("xyz") for name in ARMS})


def own_server(arm):
    return arm.name


def by_name(servers):
    return lambda arm: servers[arm.name]


@calm
@given(some_arms, st.integers(0, 30), sharing)
def test_turns_of_a_repeat_have_every_arm_once(arms, repeat, servers):
    found = turns("s", arms, repeat, False, by_name(servers))
    assert sorted(block.arm.name for block in found) == sorted(arm.name for arm in arms)


@calm
@given(some_arms)
def test_turns_let_every_arm_begin_once_before_one_begins_again(arms):
    first = [turns("s", arms, n, False, own_server)[0].arm for n in range(len(arms))]
    assert first == arms


@calm
@given(some_arms, st.integers(0, 30), sharing)
def test_turns_of_arms_that_share_a_server_are_next_to_each_other(arms, repeat, servers):
    found = [servers[block.arm.name] for block in turns("s", arms, repeat, False, by_name(servers))]
    assert len([server for server, _ in groupby(found)]) == len(set(found))


@calm
@given(some_arms, sharing)
def test_turns_let_every_arm_be_the_first_of_its_server(arms, servers):
    begins = {server: set() for server in servers.values()}
    for repeat in range(len(arms) ** 2):
        blocks = turns("s", arms, repeat, False, by_name(servers))
        for server, sharers in groupby(blocks, lambda block: servers[block.arm.name]):
            begins[server].add(next(sharers).arm.name)
    for arm in arms:
        assert arm.name in begins[servers[arm.name]]


def test_turns_of_stock_and_a_mode_on_one_gpu_need_a_start_less_at_each_change_of_repeat():
    arms = [ARMS["hicache"], ARMS["off"], ARMS["prefetch"]]
    shared = by_name({"hicache": "hicache", "off": "kvflow", "prefetch": "kvflow"})
    assert [[block.arm.name for block in turns("s", arms, n, False, shared)] for n in range(4)] == [
        ["hicache", "off", "prefetch"], ["off", "prefetch", "hicache"],
        ["hicache", "prefetch", "off"], ["prefetch", "off", "hicache"],
    ]  # fmt: skip


def test_turns_say_which_are_the_first_and_the_last_ones():
    arms = [ARMS["hicache"]]
    [first] = turns("s", arms, 0, False, own_server)
    [last] = turns("s", arms, 4, True, own_server)
    assert (first.first, first.last) == (True, False)
    assert (last.first, last.last) == (False, True)


@pytest.mark.parametrize(
    ("effort", "repeat", "elapsed", "latest", "last"),
    [
        (Effort(5), 3, 1e9, 1e9, False),  # without a budget time does not count
        (Effort(5), 4, 0, 0, True),
        (Effort(5, budget_s=100, least_repeats=3), 1, 1e9, 50, False),  # too few as yet
        (Effort(5, budget_s=100, least_repeats=3), 2, 50, 30, True),  # another would end at 110
        (Effort(5, budget_s=100, least_repeats=3), 2, 50, 20, False),  # at 90
    ],
)
def test_effort_ends_in_time_but_not_before_the_least_repeats(
    effort, repeat, elapsed, latest, last
):
    assert effort.is_last(repeat, elapsed, latest) is last


def test_pace_knows_nothing_before_the_first_turn():
    assert Pace(10).left_s() is None


def test_pace_goes_by_the_latest_turns_of_each_arm():
    pace = Pace(10)
    for seconds in (90, 10, 10, 10):  # the first one had to warm the cache
        pace.note("a", seconds)
    pace.note("b", 20)
    assert pace.left_s() == pytest.approx(15 * 5)
    pace.skip(2)
    assert (pace.left_s(), pace.done) == (pytest.approx(15 * 3), 5)
