import pytest

from kvflow.bench.arms import ARMS, baseline, choose, comparisons
from kvflow.errors import UsageError


def test_choose_all_takes_every_arm():
    assert choose("all") == list(ARMS.values())


def test_choose_orders_arms_and_takes_each_once():
    assert [arm.name for arm in choose(" full, hicache,full")] == ["hicache", "full"]


def test_choose_of_an_unknown_arm_says_which_there_are():
    with pytest.raises(UsageError) as error:
        choose("hicache,prefech")
    assert "did you mean 'prefetch'?" in error.value.what
    assert "lru, hicache, limit" in error.value.why


def test_choose_of_nothing_is_refused():
    with pytest.raises(UsageError, match="names no arm"):
        choose(" , ")


def test_arms_without_a_host_tier_are_lru_and_limit():
    assert [arm.name for arm in ARMS.values() if not arm.has_host_tier] == ["lru", "limit"]


def test_comparisons_are_each_arm_with_those_before_it():
    assert comparisons(["full", "lru", "hicache"]) == [
        ("hicache", "lru"), ("full", "lru"), ("full", "hicache")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arms", "expected"),
    [
        (["lru", "hicache", "full"], "hicache"),
        (["lru", "full"], "lru"),
        (["evict", "full"], "evict"),
        ([], None),
    ],
)
def test_baseline_is_stock_if_it_is_there(arms, expected):
    assert baseline(arms) == expected
