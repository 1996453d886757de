"""Counts per step: least values that rise again, and changes reported once (invariants 8 to 10)."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kvflow.graph import MAX_STEPS
from kvflow.runs import StepChange
from kvflow.runs.counts import StepCounts

VALUES = st.integers(0, MAX_STEPS)


def test_move_least_value_away_lets_it_rise() -> None:
    """Invariant 10: no latch on the least value."""
    counts = StepCounts()
    counts.move("c", "a", None, 1)
    counts.move("c", "a", None, 5)
    counts.drain()
    counts.move("c", "a", 1, 9)
    assert counts.drain() == [StepChange("c", "a", 5)]


def test_move_last_value_away_leaves_nothing() -> None:
    """Invariant 9."""
    counts = StepCounts()
    counts.move("c", "a", None, 1)
    counts.drain()
    counts.move("c", "a", 1, None)
    assert counts.drain() == [StepChange("c", "a", None)]
    assert (counts.least("c", "a"), counts.waiting("c", "a"), counts.agents("c")) == (None, 0, 0)
    assert list(counts) == []


def test_drain_agent_that_ends_where_it_began_is_not_reported() -> None:
    counts = StepCounts()
    counts.move("c", "a", None, 3)
    counts.move("c", "a", 3, None)
    assert counts.drain() == []


def test_drain_reports_each_agent_once_in_the_order_of_first_moves() -> None:
    counts = StepCounts()
    for agent, steps in (("b", 3), ("a", 2), ("b", 1)):
        counts.move("c", agent, None, steps)
    assert counts.drain() == [StepChange("c", "b", 1), StepChange("c", "a", 2)]
    assert counts.drain() == []


def test_waiting_counts_runs_at_the_least_value_only() -> None:
    counts = StepCounts()
    for steps in (2, 1, 1, 7):
        counts.move("c", "a", None, steps)
    assert (counts.least("c", "a"), counts.waiting("c", "a")) == (1, 2)


def test_clients_with_the_same_agent_are_apart() -> None:
    """Invariant 7."""
    counts = StepCounts()
    counts.move("one", "planner", None, 1)
    counts.move("two", "planner", None, 4)
    assert (counts.least("one", "planner"), counts.least("two", "planner")) == (1, 4)
    assert list(counts) == counts.drain()


@given(st.data())
def test_least_after_any_moves_is_the_minimum_of_what_is_held(data: st.DataObject) -> None:
    counts, held = StepCounts(), Counter[int]()
    told: int | None = None
    for _ in range(data.draw(st.integers(0, 12))):
        old = data.draw(st.sampled_from([None, *held.elements()]))
        new = data.draw(VALUES if old is None else st.none() | VALUES)
        held.update(() if new is None else (new,))
        held.subtract(() if old is None else (old,))
        counts.move("c", "a", old, new)
        if data.draw(st.booleans()):
            told = next((change.steps for change in counts.drain()), told)
            assert told == min(held.elements(), default=None)
        assert counts.least("c", "a") == min(held.elements(), default=None)
