import pytest
from support.bench import DrawnRig, DrawnStage, Silent, make_outcome, make_setting

from kvflow.bench import document, session
from kvflow.bench.fail_if import parse
from kvflow.errors import UsageError

ARMS = ("hicache", "prefetch", "full")


def test_parse_reads_metric_arms_sign_and_number():
    found = parse(" ttft  full / hicache<= 1.25", ARMS)
    assert (found.metric, found.arm, found.other, found.sign, found.number) == (
        "ttft", "full", "hicache", "<=", 1.25
    )  # fmt: skip
    assert parse("full/hicache < .9", ARMS).metric == "run"


@pytest.mark.parametrize("text", ["", "full < 1", "full/hicache", "full/hicache = 1", "a/b < x"])
def test_parse_of_no_condition_shows_one(text):
    with pytest.raises(UsageError, match="no condition") as error:
        parse(text, ARMS)
    assert "'full/hicache < 1.0'" in error.value.hint


def test_parse_about_an_arm_that_is_not_measured_is_refused():
    with pytest.raises(UsageError, match="lru is not measured") as error:
        parse("full/lru < 1", ARMS)
    assert error.value.hint == "--arms hicache,prefetch,full,lru"


def test_parse_about_an_unknown_arm_says_which_there_are():
    with pytest.raises(UsageError, match="best is not measured") as error:
        parse("best/hicache < 1", ARMS)
    assert "arms are lru" in error.value.why


@pytest.fixture
def found(tmp_path):
    outcome = make_outcome(make_setting(tmp_path), "hicache,prefetch,full", 4)
    stage = DrawnStage({"hicache": 1.0, "prefetch": 0.5, "full": 0.502}, noise=0.01)
    session.run(outcome, DrawnRig(stage), Silent())
    return document.result(outcome, {}, "kvflow bench flow", None)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("prefetch/hicache < 1.0", False),
        ("prefetch/hicache < 2.5", True),
        ("hicache/prefetch < 1.0", True),  # the inverse of what is in the document
        ("hicache/prefetch > 1.0", False),
        ("ttft prefetch/hicache < 1.5", False),
        ("full/prefetch < 1.0", False),  # no difference counts as 1
        ("full/prefetch <= 1.0", True),
        ("full/prefetch < 1.01", True),
    ],
)
def test_condition_goes_by_what_can_be_claimed(found, text, holds):
    assert parse(text, ARMS).holds(found) is holds


def test_condition_about_what_could_not_be_measured_holds(found):
    speedups = {"ttft": {}}
    cut = found.model_copy(update={"speedups": speedups})
    assert parse("full/hicache < 0.1", ARMS).holds(cut)
