import pytest
from support.bench import make_result

from kvflow.bench.report import words
from kvflow.bench.result import SpeedupFigure, settings_of


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


def test_goodput_is_told_of_every_arm_with_its_limits(tmp_path):
    [document] = settings_of(make_result(tmp_path, limits={"ttft": 300.0, "e2el": 2500.5})[0])
    rates = {name: arm.metrics["request_goodput"] for name, arm in document.arms.items()}
    [line] = words.goodput(document)
    assert line.startswith("goodput, calls a second within ttft:300 e2el:2500.5: ")
    assert all(f"{rate:.3g} with {name}" in line for name, rate in rates.items())


def test_goodput_passes_over_arms_that_were_not_measured(tmp_path):
    [document] = settings_of(make_result(tmp_path, limits={"ttft": 300.0})[0])
    full = document.arms["full"].model_copy(update={"run_s": None, "metrics": {}})
    cut = document.model_copy(update={"arms": {**document.arms, "full": full}})
    assert "full" not in words.goodput(cut)[0]


def test_goodput_is_not_told_where_nobody_asked(tmp_path):
    assert words.goodput(settings_of(make_result(tmp_path)[0])[0]) == []
