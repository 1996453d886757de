"""All ranks of a model decide the same (paper, invariant 34), whatever their copies do."""

import pytest
import support.engine  # noqa: F401 - before SGLang
from support.two_ranks import RANKS, Meeting, Rank, live_together

pytestmark = pytest.mark.engine

PASSES = 150


@pytest.mark.parametrize("mode", ["prefetch", "full"])
@pytest.mark.parametrize("seed", range(2))
def test_ranks_whose_copies_end_at_different_times_decide_the_same(mode, seed):
    meeting = Meeting()
    ranks = [Rank(number, meeting.least, mode) for number in range(RANKS)]
    live_together(ranks, meeting, seed, PASSES)
    first, second = (rank.decided for rank in ranks)
    assert first == second
    outcomes = ranks[0].made.outcomes
    assert min(outcomes.operations, outcomes.used, outcomes.late, outcomes.wasted) > 0
    if mode == "full":
        assert ranks[0].made.cache.deferrals.calls > 0


def test_ranks_that_did_not_agree_on_what_is_complete_would_decide_otherwise():
    meeting = Meeting()
    ranks = [Rank(number, lambda rank, mine: None, "full") for number in range(RANKS)]
    live_together(ranks, meeting, 0, PASSES)
    first, second = (rank.decided for rank in ranks)
    assert first != second
