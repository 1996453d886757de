from array import array
from types import SimpleNamespace
from typing import Any

import pytest

from kvflow.engine.ledger import Leaving, Ledger
from kvflow.frames import EvictionRecord, Why
from kvflow.policy.rank import KEPT, SPENT

ROOT: Any = SimpleNamespace(id=0, parent=None, key=None)


class Key:
    """A key as a node of SGLang's tree has it."""

    is_bigram = False
    extra_key = cache_salt = None

    def __init__(self, *token_ids: int) -> None:
        self._ids = array("q", token_ids)

    def __len__(self) -> int:
        return len(self._ids)

    def raw_token_ids(self) -> Any:
        return self._ids


def leaf(node: int, *token_ids: int) -> Any:
    return SimpleNamespace(id=node, parent=ROOT, key=Key(*token_ids))


def left(node: int, tokens: int = 1) -> Leaving:
    return Leaving(node, tokens, None, None)


def test_evicted_notes_what_a_node_was_worth():
    ledger = Ledger()
    ledger.evicted("device", left(7, 30), Why.STEPS, (KEPT, -5, 12.0, 7), "demoted")
    assert list(ledger.latest) == [
        EvictionRecord(
            seq=1, tier="device", node=7, tokens=30, why=Why.STEPS, steps=5, outcome="demoted"
        )
    ]


def test_evicted_counts_tokens_by_tier():
    ledger = Ledger()
    ledger.evicted("device", left(1, 30), Why.SPENT, (SPENT, -4, 1.0, 1), "dropped")
    ledger.evicted("host", left(2, 10), Why.UNTAGGED, (KEPT, -4, 2.0, 2), "dropped")
    ledger.evicted("device", left(3, 5), Why.ACCESS, (KEPT, 0, 3.0, 3), "demoted")
    assert ledger.evicted_tokens == {"device": 35, "host": 10}


@pytest.mark.parametrize("count", [512, 513, 2_000])
def test_latest_keeps_the_last_512_evictions(count):
    ledger = Ledger()
    for node in range(count):
        ledger.evicted("device", left(node), Why.SPENT, (SPENT, -4, 0.0, node), "dropped")
    assert [record.seq for record in ledger.latest] == list(range(count - 511, count + 1))


def test_not_backed_up_counts_tokens():
    ledger = Ledger()
    ledger.not_backed_up(7)
    ledger.not_backed_up(5)
    assert ledger.not_backed_up_tokens == 12


def evict(ledger: Ledger, node: Any, why: Why = Why.STEPS) -> None:
    looked = ledger.look(node)
    ledger.removed(node.id)
    ledger.evicted("device", looked, why, (KEPT, -1, 0.0, node.id), "dropped")


def test_eviction_of_what_is_asked_for_again_is_regretted():
    ledger = Ledger()
    for node in range(3):
        evict(ledger, leaf(node, node, node))
    ledger.asked([1, 1, 9], (None, None), device=0, cached=0)
    assert [record.regret for record in ledger.latest] == [False, True, False]
    assert ledger.regretted_tokens == 2


def test_eviction_of_what_has_no_record_any_more_is_not_regretted():
    ledger = Ledger()
    evict(ledger, leaf(0, 1, 1))
    for node in range(1, 513):
        ledger.evicted("device", left(node), Why.SPENT, (SPENT, -4, 0.0, node), "dropped")
    ledger.asked([1, 1, 9], (None, None), device=0, cached=0)
    assert not any(record.regret for record in ledger.latest)
    assert ledger.regretted_tokens == 0


def test_age_of_an_eviction_is_the_time_since_the_node_was_used():
    ledger = Ledger()
    ledger.ages.used(5)
    evict(ledger, leaf(5, 1))
    [record] = ledger.latest
    assert record.age_s is not None
    assert 0 <= record.age_s < 60
    assert sum(ledger.ages.evicted_tokens) == 1


def test_spent_node_does_not_count_as_evicted_at_an_age():
    ledger = Ledger()
    ledger.ages.used(5)
    evict(ledger, leaf(5, 1), Why.SPENT)
    assert sum(ledger.ages.evicted_tokens) == 0


def test_removed_nodes_leave_nothing_behind():
    ledger = Ledger()
    for node in range(100):
        ledger.ages.used(node)
        evict(ledger, leaf(node, node))
    assert len(ledger.ages) == 0
