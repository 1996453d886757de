from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvflow.client.exchange import Answer
from kvflow.client.records import CallRecord, CallState
from kvflow.client.summary import Spread, spread, summarise, summarise_agents
from kvflow.workload import Call


def record(agent: str, state: CallState, **answer: int | float | None) -> CallRecord:
    made = CallRecord(Call(0, 0, agent, 0, 0, (), None, 8, 8), "r0", state)
    if answer:
        known = {"ttft_s": 0.0, "latency_s": 0.0, "prompt_tokens": None, "output_tokens": None,
                 "cached_tokens": None, "cached_device": None, "cached_host": None}  # fmt: skip
        made.answer = Answer(text="", output_ids=None, finish_reason="stop", **known | answer)  # type: ignore[arg-type]
    return made


def test_spread_of_nothing_is_none() -> None:
    assert spread([]) is None


def test_spread_of_one_value_is_that_value() -> None:
    assert spread([2.5]) == Spread(2.5, 2.5, 2.5)


def test_spread_of_0_to_100_has_its_percentiles() -> None:
    assert spread(list(range(100, -1, -1))) == Spread(50, 50, 95)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_spread_lies_within_the_values(values: list[float]) -> None:
    made = spread(values)
    assert made is not None
    slack = 1e-9 * max(values)
    assert made.mean == pytest.approx(fmean(values))
    assert min(values) - slack <= made.p50 <= made.p95 + slack <= max(values) + 2 * slack


def test_summarise_counts_states_and_sums_answers() -> None:
    made = summarise(
        [
            record("a", CallState.DONE, ttft_s=1.0, prompt_tokens=10, cached_device=4),
            record("a", CallState.DONE, ttft_s=3.0, prompt_tokens=20, cached_device=6),
            record("a", CallState.FAILED),
        ]
    )
    assert (made.calls[CallState.DONE], made.calls[CallState.FAILED]) == (2, 1)
    assert made.ttft_s is not None
    assert made.ttft_s.mean == 2.0
    assert (made.prompt_tokens, made.cached_device) == (30, 10)


def test_summarise_what_no_server_reported_is_none_not_zero() -> None:
    made = summarise([record("a", CallState.DONE, ttft_s=1.0)])
    assert made.cached_host is None


def test_summarise_agents_lists_them_in_order_with_or_without_calls() -> None:
    made = summarise_agents(["b", "a"], [record("a", CallState.DONE, ttft_s=1.0)])
    assert list(made) == ["b", "a"]
    assert [summary.calls[CallState.DONE] for summary in made.values()] == [0, 1]
