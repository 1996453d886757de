"""What is written to the host, case by case."""

import pytest

from kvflow.policy.backup import may_be_asked_for

FIXED = 64


@pytest.mark.parametrize(("start", "worth"), [(0, True), (63, True), (64, False), (96, False)])
def test_what_begins_in_the_fixed_prefix_is_copied_and_a_tail_is_not(
    start: int, worth: bool
) -> None:
    assert may_be_asked_for(start, boundary=FIXED, hit=False, storage=False) is worth


def test_agent_without_a_fixed_prefix_leaves_only_tails() -> None:
    assert not may_be_asked_for(0, boundary=0, hit=False, storage=False)


def test_tail_that_another_call_has_found_is_copied() -> None:
    assert may_be_asked_for(64, boundary=FIXED, hit=True, storage=False)


def test_everything_is_copied_while_the_boundary_is_not_known() -> None:
    assert may_be_asked_for(640, boundary=None, hit=False, storage=False)


def test_storage_that_the_host_tier_feeds_sees_everything() -> None:
    assert may_be_asked_for(640, boundary=FIXED, hit=False, storage=True)
