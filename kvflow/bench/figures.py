"""From the turns of an arm to its figures."""

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

from kvflow.bench.arms import ARMS, baseline, comparisons
from kvflow.bench.goodput import Limits, goodput, tpot_s
from kvflow.bench.result import AgentFigures, ArmFigures, SpeedupFigure, Spread
from kvflow.bench.session import Measured
from kvflow.bench.stats import Ratio, paired, percentile, spread
from kvflow.bench.trial import Answers, Trial, hits
from kvflow.client.exchange import Answer
from kvflow.client.records import CallRecord, CallState


class Mismatch(NamedTuple):
    """How often answers differ.

    Attributes:
        share: of the answers that were compared.
        answers: that were.
    """

    share: float
    answers: int


def good_trials(measured: Measured) -> dict[str, list[Trial]]:
    """The turns that were measured whole, by arm, in the order in which arms are compared."""
    found: dict[str, list[Trial]] = {}
    for name in ARMS:
        trials = [one for one in measured.trials if one.arm == name and one.whole]
        if trials:
            found[name] = trials
    return found


def arms(measured: Measured, limits: Limits | None) -> dict[str, ArmFigures]:
    """The figures of every arm that took a turn."""
    trials = good_trials(measured)
    took_part = [name for name in ARMS if name in trials or name in measured.broken]
    rates = mismatches(trials)
    return {
        name: _arm(name, trials.get(name, []), measured, rates.get(name), limits)
        for name in took_part
    }


def _arm(
    name: str,
    trials: Sequence[Trial],
    measured: Measured,
    mismatch: Mismatch | None,
    limits: Limits | None,
) -> ArmFigures:
    calls = [call for trial in trials for call in trial.calls]
    seconds = sum(trial.seconds for trial in trials)
    found, cpu_s = hits(calls), [trial.cpu_s for trial in trials if trial.cpu_s is not None]
    plain = [answer.ttft_s for trial in trials for answer in trial.plain]
    engine = _summed(trials)
    return ArmFigures(
        label=ARMS[name].label,
        repeats=len(trials),
        run_s=_run_spread(trials),
        run_s_by_repeat={trial.repeat: trial.run_s for trial in trials},
        ttft_s_by_repeat={trial.repeat: trial.ttft_s for trial in trials},
        metrics=_metrics(calls, seconds, limits) if trials else {},
        reusable_tokens=found.reusable,
        device_tokens=found.device,
        host_tokens=found.host,
        computed_tokens=_computed(calls),
        device_share=found.device_share,
        host_share=found.host_share,
        agents=_agents(measured, calls),
        engine=engine,
        cpu_cores=sum(cpu_s) / seconds if cpu_s and len(cpu_s) == len(trials) else None,
        gpu_busy=_mean([share for trial in trials for share in trial.gpus.busy]),
        h2d_gbps=_h2d_gbps(trials, engine, seconds),
        link_share=_link_share(engine, seconds, measured.facts.get("link_gbps")),
        warm_rounds=max((trial.warm_rounds for trial in trials), default=0),
        mismatch=mismatch.share if mismatch else None,
        answers_compared=mismatch.answers if mismatch else 0,
        plain_ttft_ms=fmean(plain) * 1e3 if plain else None,
        failure=measured.broken.get(name),
    )


def _run_spread(trials: Sequence[Trial]) -> Spread | None:
    runs = [run.seconds for trial in trials for run in trial.runs if run.ok]
    if not runs:
        return None
    return Spread(
        mean=fmean(runs), p50=median(runs), p95=percentile(runs, 95), p99=percentile(runs, 99)
    )


def _metrics(
    calls: Sequence[CallRecord], seconds: float, limits: Limits | None
) -> dict[str, float]:
    answers = [call.answer for call in calls if call.answer is not None]
    given = sum(answer.prompt_tokens or 0 for answer in answers)
    made = sum(answer.output_tokens or 0 for answer in answers)
    found: dict[str, float] = {
        "duration": seconds,
        "completed": len(answers),
        "failed": sum(call.state is CallState.FAILED for call in calls),
        "total_input_tokens": given,
        "total_output_tokens": made,
        "request_throughput": len(answers) / seconds,
        "output_throughput": made / seconds,
        "total_token_throughput": (given + made) / seconds,
    }
    if limits is not None:
        found["request_goodput"] = goodput(answers, seconds, limits)
    found |= spread("ttft", [answer.ttft_s for answer in answers])
    found |= spread("e2el", [answer.latency_s for answer in answers])
    if tpots := [tpot for answer in answers if (tpot := tpot_s(answer)) is not None]:
        found |= spread("tpot", tpots)
    if itls := [itl for answer in answers for itl in answer.itl_s]:
        found |= spread("itl", itls)
    return found


def _agents(measured: Measured, calls: Sequence[CallRecord]) -> dict[str, AgentFigures]:
    found: dict[str, AgentFigures] = {}
    for agent in measured.setting.driven.recipe.agents:
        own = [call for call in calls if call.call.agent == agent and call.answer is not None]
        if not own:
            continue
        where = hits(own)
        found[agent] = AgentFigures(
            calls=len(own),
            ttft_ms=fmean(call.answer.ttft_s for call in own if call.answer) * 1e3,
            reusable_tokens=where.reusable,
            device_tokens=where.device,
            host_tokens=where.host,
            computed_tokens=_computed(own),
        )
    return found


def _computed(calls: Sequence[CallRecord]) -> int:
    return sum(_computed_of(call.answer) for call in calls if call.answer is not None)


def _computed_of(answer: Answer) -> int:
    return (answer.prompt_tokens or 0) - (answer.cached_tokens or 0)


def _summed(trials: Sequence[Trial]) -> dict[str, float]:
    total: dict[str, float] = {}
    for trial in trials:
        for name, value in (trial.counts or {}).items():
            total[name] = total.get(name, 0.0) + value
    return total


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _h2d_gbps(trials: Sequence[Trial], engine: Mapping[str, float], seconds: float) -> float | None:
    seen = _mean([rate for trial in trials for rate in trial.gpus.h2d_gbps])
    if seen is None and "h2d_bytes" in engine:
        return engine["h2d_bytes"] / seconds / 1e9
    return seen


def _link_share(engine: Mapping[str, float], seconds: float, gbps: object) -> float | None:
    carried = engine.get("h2d_bytes")
    if carried is None or not isinstance(gbps, float):
        return None
    return carried / (gbps * 1e9 * seconds)


def speedups(measured: Measured) -> dict[str, SpeedupFigure | dict[str, SpeedupFigure]]:
    """Of whole runs by pair, and of the first token under `ttft`."""
    trials = good_trials(measured)
    of_runs: dict[str, SpeedupFigure | dict[str, SpeedupFigure]] = {}
    of_ttft: dict[str, SpeedupFigure] = {}
    for arm, other in comparisons(list(trials)):
        pairs = _in_same_repeat(trials[arm], trials[other])
        if pairs:
            own, base = zip(*pairs, strict=True)
            runs = paired([t.run_s for t in own], [t.run_s for t in base])
            ttft = paired([t.ttft_s for t in own], [t.ttft_s for t in base])
            of_runs[f"{arm}/{other}"] = figure(runs)
            of_ttft[f"{arm}/{other}"] = figure(ttft)
    return {**of_runs, "ttft": of_ttft}


def figure(ratio: Ratio) -> SpeedupFigure:
    """A ratio as it stands in a document."""
    return SpeedupFigure(mean=ratio.mean, low=ratio.low, high=ratio.high, claim=ratio.claim)


def _in_same_repeat(one: Sequence[Trial], other: Sequence[Trial]) -> list[tuple[Trial, Trial]]:
    by_repeat = {trial.repeat: trial for trial in other}
    return [(trial, by_repeat[trial.repeat]) for trial in one if trial.repeat in by_repeat]


def mismatches(trials: Mapping[str, Sequence[Trial]]) -> dict[str, Mismatch]:
    """How often warm answers differ from the baseline's cold ones, by arm."""
    base = baseline(list(trials))
    cold = next((t.cold for t in trials[base] if t.cold is not None), None) if base else None
    again = {arm: next((t.again for t in own if t.again), None) for arm, own in trials.items()}
    if not cold:
        return {}
    return {arm: mismatch(said, cold) for arm, said in again.items() if said}


def mismatch(said: Answers, reference: Answers) -> Mismatch:
    """Of the calls in both, how many were answered differently."""
    both = said.keys() & reference.keys()
    differ = sum(said[key] != reference[key] for key in both)
    return Mismatch(differ / len(both) if both else 0.0, len(both))
