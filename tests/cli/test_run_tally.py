"""Held to the summary of a ledger that saw the same drive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.cli.run_tally import Sums, Tally
from kvflow.client.exchange import Answer
from kvflow.client.records import CallRecord, CallState, Ledger, Observer, RunRecord
from kvflow.client.summary import AgentSummary, summarise, summarise_agents
from kvflow.workload import Call

AGENTS = ("a", "b")
SENT = (CallState.WAITING, CallState.PREFILL)
WAYS: list[tuple[CallState, ...]] = [
    SENT[:1],
    SENT,
    (CallState.WAITING, CallState.FAILED),
    (*SENT, CallState.FAILED),
    (*SENT, CallState.DONE),
    (*SENT, CallState.DECODING, CallState.DONE),
]
tokens = st.none() | st.integers(0, 9)
answers = st.builds(
    lambda ttft_s, device, host: Answer("", None, "stop", ttft_s, 9.0, 9, 9, 9, device, host),
    st.floats(0, 9),
    tokens,
    tokens,
)
calls = st.tuples(st.sampled_from(AGENTS), st.sampled_from(WAYS), answers)
runs = st.lists(st.lists(calls, max_size=5), max_size=4)


def go(
    record: CallRecord, way: tuple[CallState, ...], answer: Answer, observers: list[Observer]
) -> None:
    """A call goes its way, and has its answer where that ends well."""
    for record.state in way:
        record.answer = answer if record.state is CallState.DONE else None
        for observer in observers:
            observer.call_changed(record)


def same(sums: Sums, summary: AgentSummary) -> bool:
    mean = summary.ttft_s.mean if summary.ttft_s else None
    return (
        {state: sums.calls[state] for state in CallState} == summary.calls
        and sums.mean_ttft_s == (None if mean is None else pytest.approx(mean))
        and sums.cached_device == summary.cached_device
        and sums.cached_host == summary.cached_host
    )


@calm
@given(runs, st.integers(0, 4))
def test_tally_has_the_figures_of_a_summary_at_any_time(
    drive: list[list[tuple[str, tuple[CallState, ...], Answer]]], ended: int
) -> None:
    tally, ledger = Tally(AGENTS), Ledger()
    observers: list[Observer] = [tally, ledger]
    for index, run in enumerate(drive):
        for at, (agent, way, answer) in enumerate(run):
            call = Call(index, at, agent, 0, 0, (), None, 8, 8)
            go(CallRecord(call, f"r{index}"), way, answer, observers)
        if index < ended:
            ok = all(way[-1] is CallState.DONE for _, way, _ in run)
            for observer in observers:
                observer.run_ended(RunRecord(f"r{index}", index, 0.0, 1.0, ok))
    assert same(tally.all, summarise(ledger.calls))
    by_agent = summarise_agents(AGENTS, ledger.calls)
    assert list(tally.agents) == list(by_agent)
    assert all(same(tally.agents[agent], by_agent[agent]) for agent in AGENTS)
