"""Figures of a drive: per agent, and of whole runs. Also of one that is still going on."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles

from kvflow.client.exchange import Answer
from kvflow.client.records import CallRecord, CallState


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, median and 95th percentile of some seconds."""

    mean: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class AgentSummary:
    """All calls of one agent, or of all of them. Sums are None where no server reported any.

    Attributes:
        calls: how many are in each state.
        ttft_s: time to first token of the calls that are done.
        latency_s: time to the end of the answer.
        prompt_tokens: sent in all.
        output_tokens: generated in all.
        cached_tokens: of the prompts, found in a cache of any tier.
        cached_device: of these, found in device memory.
        cached_host: of these, loaded from host memory.
    """

    calls: dict[CallState, int]
    ttft_s: Spread | None
    latency_s: Spread | None
    prompt_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cached_device: int | None
    cached_host: int | None


def spread(values: Sequence[float]) -> Spread | None:
    """Mean and percentiles (linear between neighbours); None of no values."""
    if not values:
        return None
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    twentieths = quantiles(values, n=20, method="inclusive")
    return Spread(fmean(values), twentieths[9], twentieths[18])


def summarise(records: Iterable[CallRecord]) -> AgentSummary:
    """The figures of some calls."""
    records = list(records)
    counts = Counter(record.state for record in records)
    answers = [record.answer for record in records if record.answer is not None]
    return AgentSummary(
        {state: counts[state] for state in CallState},
        spread([answer.ttft_s for answer in answers]),
        spread([answer.latency_s for answer in answers]),
        *(_total(answers, name) for name in _SUMS),
    )


_SUMS = ("prompt_tokens", "output_tokens", "cached_tokens", "cached_device", "cached_host")


def _total(answers: Iterable[Answer], name: str) -> int | None:
    known = [value for answer in answers if (value := getattr(answer, name)) is not None]
    return sum(known) if known else None


def summarise_agents(
    agents: Iterable[str], records: Iterable[CallRecord]
) -> dict[str, AgentSummary]:
    """The figures by agent, in the order given."""
    by_agent: dict[str, list[CallRecord]] = {agent: [] for agent in agents}
    for record in records:
        by_agent[record.call.agent].append(record)
    return {agent: summarise(of_agent) for agent, of_agent in by_agent.items()}
