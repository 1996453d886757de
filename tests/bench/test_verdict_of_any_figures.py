"""Verdicts on figures that no bench would bring together: still nothing is said that they do not
show."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.bench import figures
from kvflow.bench.arms import ARMS, baseline, comparisons
from kvflow.bench.result import ArmFigures, SpeedupFigure, Spread
from kvflow.bench.stats import Claim, Ratio
from kvflow.bench.verdict import Evidence, judge

shares = st.floats(0, 1) | st.sampled_from([0.0, 1.0])
times_ms = st.floats(1, 1e4)


@st.composite
def measured_arms(draw) -> dict[str, ArmFigures]:
    names = draw(st.sets(st.sampled_from(list(ARMS)), min_size=1))
    return {name: draw(arm_figures(name)) for name in ARMS if name in names}


@st.composite
def arm_figures(draw, name: str) -> ArmFigures:
    device = draw(shares)
    host, ttft_ms = draw(shares) * (1 - device), draw(times_ms)
    counters = ("tagged_calls", "unknown_agents", "prefetched_tokens", "prefetched_used_tokens",
                "prefetched_late_tokens", "prefetched_wasted_tokens")  # fmt: skip
    counted = st.dictionaries(st.sampled_from(counters), st.floats(0, 1e6))
    run_s = Spread(mean=1.0, p50=1.0, p95=1.0, p99=1.0)
    return ArmFigures(
        label=ARMS[name].label,
        repeats=3,
        run_s=draw(st.sampled_from([run_s, run_s, None])),
        run_s_by_repeat={},
        ttft_s_by_repeat={},
        metrics={
            "mean_ttft_ms": ttft_ms,
            "mean_e2el_ms": ttft_ms + draw(times_ms),
            "completed": draw(st.integers(1, 100)),
        },
        reusable_tokens=draw(st.integers(0, 10**6)),
        device_tokens=0,
        host_tokens=0,
        computed_tokens=0,
        device_share=device,
        host_share=host,
        agents={},
        engine={} if ARMS[name].mode is None else draw(counted),
        cpu_cores=None,
        gpu_busy=None,
        h2d_gbps=None,
        link_share=None,
        warm_rounds=2,
        mismatch=draw(st.none() | shares),
        answers_compared=draw(st.integers(0, 100)),
        plain_ttft_ms=None,
        failure=draw(st.none() | st.just("repeat 1: gone")),
    )


@st.composite
def ratios(draw) -> SpeedupFigure:
    low, mean, high = sorted(draw(st.tuples(*[st.floats(0.1, 10) | st.floats(0.97, 1.03)] * 3)))
    single = draw(st.booleans())
    return figures.figure(Ratio(mean, None, None) if single else Ratio(mean, low, high))


@st.composite
def any_evidence(draw) -> Evidence:
    arms = draw(measured_arms())
    pairs = [
        f"{arm}/{other}"
        for arm, other in comparisons(list(arms))
        if arms[arm].run_s is not None and arms[other].run_s is not None
    ]
    flags = ("--pool-ratio", "--link-ratio", "--fixed", "--output")
    return Evidence(
        arms=arms,
        runs={pair: draw(ratios()) for pair in pairs},
        ttft={pair: draw(ratios()) for pair in pairs},
        recompute_ms=draw(st.none() | times_ms),
        recompute_after_ms=draw(st.none() | times_ms),
        link_ratio=draw(st.none() | st.floats(0.01, 10)),
        emulated=draw(st.booleans()),
        takes=draw(st.frozensets(st.sampled_from(flags))),
    )


def measured_in(found: Evidence) -> list[str]:
    return [name for name, arm in found.arms.items() if arm.run_s is not None]


def others(measured: list[str]) -> list[str]:
    return [name for name in measured if name != baseline(measured)]


def with_first_tokens_as_soon_as_from_the_host(found: Evidence, base: str | None) -> Evidence:
    """The same with a baseline that loads everything on demand, and is as soon as the others."""
    alike = figures.figure(Ratio(1.0, 0.98, 1.02))
    host = {"device_share": 0.0, "host_share": 1.0}
    arms = {
        name: arm.model_copy(update=host if name == base else {})
        for name, arm in found.arms.items()
    }
    return replace(found, arms=arms, ttft=dict.fromkeys(found.ttft, alike))


@calm
@given(any_evidence())
def test_judge_of_any_figures_advises_only_what_the_bench_takes(found):
    words = " ".join(judge(found).advice).split()
    flags = {word.strip(",") for word in words if word.startswith("--")}
    assert flags <= found.takes | {"--repeats"}


@calm
@given(any_evidence())
def test_judge_of_any_figures_says_something_wherever_a_mode_has_a_baseline(found):
    measured = measured_in(found)
    modes = [name for name in others(measured) if ARMS[name].mode]
    assert judge(found).headline.startswith("Nothing can be said") is not bool(modes)


@calm
@given(any_evidence())
def test_judge_of_any_figures_claims_only_what_a_comparison_with_the_baseline_claims(found):
    base = baseline(measured_in(found))
    claims = {ratio.claim for pair, ratio in found.runs.items() if pair.endswith(f"/{base}")}
    headline = judge(found).headline
    assert "to be slower" not in headline or Claim.SLOWER in claims
    assert "to finish a run" not in headline or Claim.FASTER in claims


@calm
@given(any_evidence())
def test_judge_of_any_figures_names_a_fast_link_only_where_ours_loaded_little_on_demand(found):
    measured = measured_in(found)
    found = with_first_tokens_as_soon_as_from_the_host(found, baseline(measured))
    ours = next((name for name in ("prefetch", "full") if name in others(measured)), None)
    if "enough to hide" in " ".join(judge(found).reasons):
        assert ours is not None
        assert found.arms[ours].host_share <= 0.1


@calm
@given(any_evidence())
def test_judge_of_any_figures_blames_a_large_pool_only_where_the_baselines_held_all(found):
    base = baseline(measured_in(found))
    if "holds nearly all" in " ".join(judge(found).reasons):
        assert base != "limit"
        assert found.arms[base].device_share > 0.9
