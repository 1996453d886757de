import pytest

from kvflow.bench.report import words
from kvflow.bench.result import SpeedupFigure


def ratio(mean, low, high, claim) -> SpeedupFigure:
    return SpeedupFigure(mean=mean, low=low, high=high, claim=claim)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (ratio(1.5, 1.2, 1.9, "faster"), "1.50 (1.20 to 1.90)"),
        (ratio(1.01, 0.9, 1.1, "no difference"), "1.01 (0.90 to 1.10) no difference"),
        (ratio(1.5, None, None, "unknown"), "1.50 (one repeat)"),
    ],
)
def test_claimed_says_what_may_not_be_claimed(found, text):
    assert words.claimed(found) == text


def test_inverted_turns_interval_and_claim_round():
    assert words.inverted(ratio(2.0, 1.6, 2.5, "faster")) == ratio(0.5, 0.4, 0.625, "slower")
    assert words.inverted(ratio(0.5, None, None, "unknown")) == ratio(2.0, None, None, "unknown")
