import pytest

from kvflow.engine.outcomes import Outcomes
from kvflow.frames import PrefetchRecord, PrefetchStatus
from kvflow.policy.prefetch import Candidate

END, ABOVE = 7, 6


@pytest.fixture
def outcomes() -> Outcomes:
    """One prefetch of two nodes is on its way."""
    made = Outcomes()
    made.started([ABOVE, END], Candidate(1, 1, 30, END, ("app", "a")))
    return made


def status(outcomes: Outcomes) -> PrefetchStatus:
    [record] = outcomes.latest()
    return record.status


def test_started_is_recorded_as_loading(outcomes):
    assert outcomes.latest() == (
        PrefetchRecord(
            seq=1, node=END, agent="app/a", steps=1, tokens=30, status=PrefetchStatus.LOADING
        ),
    )
    assert outcomes.is_ahead(END)


def test_arrived_when_its_copy_is_complete(outcomes):
    outcomes.arrived(END)
    assert status(outcomes) is PrefetchStatus.ARRIVED
    assert not outcomes.is_ahead(END)


def test_used_when_found_after_it_arrived(outcomes):
    outcomes.arrived(END)
    outcomes.found(END, 20, loading=False)
    outcomes.found(ABOVE, 10, loading=False)
    assert status(outcomes) is PrefetchStatus.USED
    assert (outcomes.used, outcomes.late) == (30, 0)


def test_late_when_found_on_its_way_and_stays_so(outcomes):
    outcomes.found(END, 20, loading=True)
    outcomes.arrived(END)
    outcomes.found(ABOVE, 10, loading=False)
    assert status(outcomes) is PrefetchStatus.LATE
    assert (outcomes.used, outcomes.late) == (30, 20)


def test_wasted_when_evicted_before_it_is_found(outcomes):
    outcomes.arrived(END)
    outcomes.lost(END, 20)
    assert status(outcomes) is PrefetchStatus.WASTED
    assert outcomes.wasted == 20


def test_used_in_part_is_used(outcomes):
    outcomes.arrived(END)
    outcomes.found(ABOVE, 10, loading=False)
    outcomes.lost(END, 20)
    assert status(outcomes) is PrefetchStatus.USED
    assert (outcomes.used, outcomes.wasted) == (10, 20)


def test_node_counts_once(outcomes):
    outcomes.arrived(END)
    for _ in range(3):
        outcomes.found(END, 20, loading=False)
    outcomes.lost(END, 20)
    assert (outcomes.used, outcomes.wasted) == (20, 0)


def test_both_parts_of_a_node_that_was_cut_belong_to_its_prefetch(outcomes):
    outcomes.split(8, END)
    outcomes.found(8, 5, loading=False)
    outcomes.found(END, 15, loading=False)
    assert outcomes.used == 20


def test_what_a_flush_takes_is_wasted(outcomes):
    outcomes.arrived(END)
    outcomes.forget_nodes()
    assert status(outcomes) is PrefetchStatus.WASTED
    assert outcomes.wasted == 30


@pytest.mark.parametrize("went", ["found", "lost"])
def test_flush_wastes_only_what_had_not_been_counted_before(outcomes, went):
    outcomes.arrived(END)
    outcomes.split(8, END)
    if went == "found":
        outcomes.found(8, 5, loading=False)
    else:
        outcomes.lost(8, 5)
    outcomes.forget_nodes()
    assert outcomes.used + outcomes.wasted == outcomes.issued == 30


def test_latest_keeps_the_last_256():
    outcomes = Outcomes()
    for number in range(300):
        outcomes.started([number], Candidate(1, 1, 1, number, ("app", "a")))
    assert [record.seq for record in outcomes.latest()] == list(range(45, 301))


def test_news_of_prefetches_that_are_long_past_is_not_kept():
    outcomes = Outcomes()
    for end in range(1000):
        outcomes.started([end], Candidate(1, 1, 10, end, ("app", "a")))
        outcomes.arrived(end)
    for end in range(1000):
        outcomes.found(end, 10, loading=False)
    told = [record for _ in range(10) for record in outcomes.take_news(100)]
    assert [record.seq for record in told] == list(range(745, 1001))
