import pytest

from kvflow.engine.ledger import Eviction, Ledger
from kvflow.frames import Why
from kvflow.policy.rank import KEPT, SPENT


def test_evicted_notes_what_a_node_was_worth():
    ledger = Ledger()
    ledger.evicted("device", 7, 30, Why.STEPS, (KEPT, -5, 12.0, 7), "demoted")
    assert list(ledger.latest) == [Eviction(1, "device", 7, 30, Why.STEPS, 5, "demoted")]


def test_evicted_counts_tokens_by_tier():
    ledger = Ledger()
    ledger.evicted("device", 1, 30, Why.SPENT, (SPENT, -4, 1.0, 1), "dropped")
    ledger.evicted("host", 2, 10, Why.UNTAGGED, (KEPT, -4, 2.0, 2), "dropped")
    ledger.evicted("device", 3, 5, Why.ACCESS, (KEPT, 0, 3.0, 3), "demoted")
    assert ledger.evicted_tokens == {"device": 35, "host": 10}
    assert ledger.evictions == 3


@pytest.mark.parametrize("count", [512, 513, 2_000])
def test_latest_keeps_the_last_512_evictions(count):
    ledger = Ledger()
    for node in range(count):
        ledger.evicted("device", node, 1, Why.SPENT, (SPENT, -4, 0.0, node), "dropped")
    assert [record.seq for record in ledger.latest] == list(range(count - 511, count + 1))
    assert ledger.evictions == count


def test_not_backed_up_counts_tokens():
    ledger = Ledger()
    ledger.not_backed_up(7)
    ledger.not_backed_up(5)
    assert ledger.not_backed_up_tokens == 12
