import pytest
from support.frames import make_frame

from kvflow.tui import hints

WRONG = {
    "bad_hints": {"unknown_key": 1, "too_long": 1200},
    "unknown_agents": 3,
    "other_prompt": 2,
    "unexpected_calls": 7,
}


def counters(**counted):
    return make_frame(counters=counted).counters


def test_told_has_the_most_frequent_first():
    assert hints.told(counters(**WRONG)) == [
        "1,200 hints ignored: too long",
        "7 calls that the workflow of their run did not expect",
        "3 calls of agents that no workflow of theirs has",
        "2 calls with another prompt than was registered",
        "1 hint ignored: unknown key",
    ]


def test_told_of_good_hints_is_nothing():
    assert hints.told(counters(bad_hints={"missing": 0})) == []


def test_unused_leaves_out_calls_that_were_only_not_expected():
    assert hints.unused(counters(**WRONG)) == 1206


@pytest.mark.parametrize("one", ["unknown_agents", "other_prompt"])
def test_unused_counts_each_kind(one):
    assert hints.unused(counters(**{one: 4})) == 4
