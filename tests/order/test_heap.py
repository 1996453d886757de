"""The eviction order, one behaviour at a time. Random histories: test_heap_histories.py."""

import tracemalloc
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvflow.order import EvictionOrder
from kvflow.policy.rank import KEPT, SPENT, Rank

Ages = dict[int, float]


def by_age(ages: Ages) -> EvictionOrder[int]:
    order: EvictionOrder[int] = EvictionOrder(lambda leaf: (KEPT, 0, ages[leaf], leaf))
    for leaf in ages:
        order.add(leaf)
    return order


@given(st.permutations(range(12)))
def test_order_same_time_lower_id_goes_first_however_it_came(leaves: list[int]) -> None:
    order = by_age(dict.fromkeys(leaves, 1.0))
    assert [order.pop() for _ in leaves] == sorted(leaves)


def test_peek_touched_without_notice_comes_up_at_its_new_time() -> None:
    ages = {1: 1.0, 2: 2.0, 3: 3.0}
    order = by_age(ages)
    ages[1] = 2.5
    assert [order.pop() for _ in range(3)] == [2, 1, 3]


@pytest.mark.parametrize(("to", "expected"), [(0.5, [3, 1, 2]), (9.0, [1, 2, 3])])
def test_reranked_moves_a_leaf_both_ways(to: float, expected: list[int]) -> None:
    ages = {1: 1.0, 2: 2.0, 3: 3.0}
    order = by_age(ages)
    ages[3] = to
    order.reranked(3)
    assert [order.pop() for _ in range(3)] == expected


def test_reranked_of_what_is_no_leaf_does_nothing() -> None:
    order = by_age({1: 1.0})
    order.reranked(2)
    assert (len(order), 2 in order) == (1, False)


def test_add_twice_holds_one_entry() -> None:
    order = by_age({1: 1.0})
    order.add(1)
    assert (order.pop(), order.pop()) == (1, None)


def test_discard_of_what_is_no_leaf_does_nothing() -> None:
    order = by_age({1: 1.0})
    order.discard(2)
    assert order.peek() == 1


def test_peek_and_pop_empty_order_have_nothing() -> None:
    order = by_age({})
    assert (order.peek(), order.pop(), list(order.upcoming())) == (None, None, [])


def test_upcoming_takes_nothing_out() -> None:
    order = by_age({3: 3.0, 1: 1.0, 2: 2.0})
    assert list(order.upcoming()) == list(order.upcoming()) == [1, 2, 3]


def test_upcoming_uncovered_parent_joins_at_its_rank() -> None:
    ranks = {1: (SPENT, 0, 1.0, 1), 2: (KEPT, -9, 5.0, 2), 3: (KEPT, -1, 2.0, 3)}
    order: EvictionOrder[int] = EvictionOrder(ranks.__getitem__)
    order.add(1)
    order.add(3)
    assert list(order.upcoming({1: 2}.get)) == [1, 2, 3]


@pytest.mark.parametrize("event", ["add", "discard", "reranked"])
def test_upcoming_order_changes_meanwhile_raises(event: str) -> None:
    order = by_age({1: 1.0, 2: 2.0, 3: 3.0})
    order.discard(3)
    looking = order.upcoming()
    next(looking)
    getattr(order, event)(3 if event == "add" else 2)
    with pytest.raises(RuntimeError, match="changed while somebody looked ahead"):
        next(looking)


def test_upcoming_few_of_many_ranks_few() -> None:
    asked = 0

    def rank(leaf: int) -> Rank:
        nonlocal asked
        asked += 1
        return KEPT, 0, float(leaf), leaf

    order: EvictionOrder[int] = EvictionOrder(rank)
    for leaf in range(10_000):
        order.add(leaf)
    asked = 0
    list(islice(order.upcoming(), 10))
    assert asked <= 20


def test_evictions_never_rank_the_rest_anew() -> None:
    asked = 0

    def rank(leaf: int) -> Rank:
        nonlocal asked
        asked += 1
        return KEPT, 0, float(leaf), leaf

    order: EvictionOrder[int] = EvictionOrder(rank)
    for leaf in range(10_000):
        order.add(leaf)
    asked = 0
    for _ in range(100):
        order.pop()
    assert asked <= 200


def test_order_memory_is_bounded_by_live_leaves() -> None:
    ages = dict.fromkeys(range(100), 0.0)
    order = by_age(ages)

    def churn(first: int, events: int) -> None:
        for event in range(first, first + events):
            leaf = event % 100
            ages[leaf] = float(event if event % 3 else -event)
            order.reranked(leaf)
            order.discard(event % 7)
            order.add(event % 7)
            ages[(event * 31) % 100] += 1.0

    churn(0, 1_000)
    tracemalloc.start()
    churn(1_000, 100_000)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 50_000
    assert len(order) == 100
