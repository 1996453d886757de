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
