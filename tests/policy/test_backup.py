"""What is written to the host, case by case and as rules over all cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvflow.policy.backup import Action, Decision, Reason, decide

BOUNDARY = 64
flags = st.booleans()
tokens = st.integers(0, 200)


@st.composite
def spans(draw: st.DrawFn) -> tuple[int, int]:
    start = draw(tokens)
    return start, start + draw(st.integers(1, 100))


@pytest.mark.parametrize(
    ("span", "hit", "action", "reason"),
    [
        ((0, 32), False, Action.BACK_UP, Reason.FIXED),
        ((32, 64), False, Action.BACK_UP, Reason.FIXED),
        ((32, 65), False, Action.SPLIT, Reason.STRADDLES),
        ((64, 96), False, Action.SKIP, Reason.TAIL),
        ((96, 128), False, Action.SKIP, Reason.TAIL),
        ((64, 96), True, Action.BACK_UP, Reason.HIT),
        ((32, 65), True, Action.BACK_UP, Reason.HIT),
    ],
)
def test_decide_tagged_call_goes_by_boundary_and_hits(
    span: tuple[int, int], hit: bool, action: Action, reason: Reason
) -> None:
    decision = decide(*span, tagged=True, boundary=BOUNDARY, hit=hit, storage=False)
    assert decision == Decision(action, reason)


def test_decide_agent_without_fixed_prefix_is_all_tail() -> None:
    decision = decide(0, 32, tagged=True, boundary=0, hit=False, storage=False)
    assert decision == Decision(Action.SKIP, Reason.TAIL)


@given(spans(), flags, st.none() | tokens, flags)
def test_decide_storage_attached_leaves_all_to_sglang(
    span: tuple[int, int], tagged: bool, boundary: int | None, hit: bool
) -> None:
    decision = decide(*span, tagged=tagged, boundary=boundary, hit=hit, storage=True)
    assert decision == Decision(Action.STOCK, Reason.STORAGE)


@given(spans(), st.none() | tokens, flags)
def test_decide_untagged_leaves_all_to_sglang(
    span: tuple[int, int], boundary: int | None, hit: bool
) -> None:
    decision = decide(*span, tagged=False, boundary=boundary, hit=hit, storage=False)
    assert decision == Decision(Action.STOCK, Reason.UNTAGGED)


@given(spans(), flags)
def test_decide_unknown_prefix_leaves_all_to_sglang(span: tuple[int, int], hit: bool) -> None:
    decision = decide(*span, tagged=True, boundary=None, hit=hit, storage=False)
    assert decision == Decision(Action.STOCK, Reason.UNKNOWN_PREFIX)


@given(tokens, st.integers(1, 100), st.integers(1, 100))
def test_decide_split_at_boundary_settles_both_halves(start: int, fixed: int, tail: int) -> None:
    boundary, end = start + fixed, start + fixed + tail

    def action(low: int, high: int) -> Action:
        return decide(low, high, tagged=True, boundary=boundary, hit=False, storage=False).action

    assert action(start, end) is Action.SPLIT
    assert (action(start, boundary), action(boundary, end)) == (Action.BACK_UP, Action.SKIP)
