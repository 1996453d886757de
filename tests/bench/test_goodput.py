import pytest
from support.bench import make_answer

from kvflow.bench.goodput import goodput, is_good, parse, tpot_s
from kvflow.errors import UsageError


def test_parse_reads_limits_with_spaces_or_commas():
    assert parse("ttft:300, e2el:2000.5 tpot:9") == {"ttft": 300, "e2el": 2000.5, "tpot": 9}


@pytest.mark.parametrize("text", ["", "ttft", "ttft:", "ttft:0", "ttft:-1", "p99:3", "ttft:inf"])
def test_parse_of_what_is_no_limit_is_refused(text):
    with pytest.raises(UsageError, match="goodput"):
        parse(text)


def test_tpot_is_the_time_of_each_token_after_the_first():
    assert tpot_s(make_answer(0.5, 0.8, output=5)) == pytest.approx(0.2)
    assert tpot_s(make_answer(output=1)) is None


@pytest.mark.parametrize(
    ("limits", "good"),
    [
        ({"ttft": 125}, True),
        ({"ttft": 124}, False),
        ({"ttft": 125, "e2el": 374}, False),
        ({"ttft": 125, "e2el": 375, "tpot": 50}, True),
        ({"tpot": 49}, False),
    ],
)
def test_call_is_good_within_every_limit(limits, good):
    assert is_good(make_answer(0.125, 0.25, output=6), limits) is good


def test_goodput_counts_good_calls_a_second():
    answers = [make_answer(0.1), make_answer(0.3), make_answer(0.1)]
    assert goodput(answers, 4.0, {"ttft": 200}) == pytest.approx(0.5)
