"""`kvflow_*` series in SGLang's /metrics, where that is on (`--enable-metrics`).

SGLang's processes write their metrics to files that one registry reads. kvflow's are counted by the
scheduler anyway, so a collector beside that registry shows what the last tick brought. /metrics
needs no key in SGLang: labels are names of registered agents only, at most 256, and `other`.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from kvflow.engine.metrics_sample import Sample

_PATH = "/metrics"

# (counter of frames.Counters, series, what it says)
_COUNTERS = (
    ("tagged_calls", "tagged_calls", "Calls with a usable tag."),
    ("untagged_calls", "untagged_calls", "Calls without a tag."),
    ("unexpected_calls", "unexpected_calls", "Calls that their run's graph did not expect."),
    ("unknown_agents", "unknown_agent_calls", "Calls of agents that no graph of theirs has."),
    ("other_prompt", "other_prompt_calls", "Calls that do not begin with a registered prompt."),
    ("expired_runs", "expired_runs", "Runs that fell silent."),
    ("evicted_runs", "evicted_runs", "Runs that went because of a limit."),
    ("not_backed_up_tokens", "not_backed_up_tokens", "Tails that were not written to the host."),
    ("regretted_tokens", "regretted_tokens", "Evicted tokens that were asked for again."),
    ("doubted_hints", "doubted_hints", "Near agents not prefetched for: they seldom speak then."),
    ("prefetches", "prefetches", "Copies started ahead of need."),
    ("deferred_calls", "deferred_calls", "Calls passed over because their prefix was arriving."),
    ("deferred_passes", "deferred_passes", "Passes in which a call was passed over."),
)
_PREFETCHED = {
    "started": "prefetched_tokens",
    "used": "prefetched_used_tokens",
    "late": "prefetched_late_tokens",
    "wasted": "prefetched_wasted_tokens",
}
_PARTS = ("free", "evictable", "locked")


class Collector:
    """Shows the last sample as prometheus_client collects it.

    Attributes:
        sample: the last one; None before the first tick.
    """

    def __init__(self) -> None:
        self.sample: Sample | None = None

    def describe(self) -> Iterator[Any]:
        """Nothing: series are known once there is a sample."""
        return iter(())

    def collect(self) -> Iterator[Any]:
        """The families of the last sample."""
        if self.sample is None:
            return
        yield from _counters(self.sample)
        yield from _gauges(self.sample)
        yield from _hits(self.sample)
        yield from _ages(self.sample)


def mount(app: Any, collector: Collector) -> None:
    """Show the collector's series in SGLang's /metrics, if SGLang has put it there.

    Args:
        app: SGLang's FastAPI application, started.
        collector: whose series.
    """
    route = next((found for found in app.routes if getattr(found, "path", "") == _PATH), None)
    if route is None:
        return
    # Only now: prometheus_client must not be imported before SGLang has told it where its files
    # are, which it does when it starts with metrics.
    from prometheus_client import CollectorRegistry, make_asgi_app, multiprocess

    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    registry.register(collector)
    route.app = make_asgi_app(registry=registry)


def _counters(sample: Sample) -> Iterator[Any]:
    from prometheus_client.core import CounterMetricFamily

    counters = sample.counters
    for field, series, text in _COUNTERS:
        yield CounterMetricFamily(f"kvflow_{series}", text, value=getattr(counters, field))
    bad = CounterMetricFamily("kvflow_bad_hints", "Hints ignored.", labels=["reason"])
    for reason, count in counters.bad_hints.items():
        bad.add_metric([reason], count)
    yield bad
    evicted = CounterMetricFamily("kvflow_evicted_tokens", "Tokens evicted.", labels=["tier"])
    evicted.add_metric(["device"], counters.evicted_device_tokens)
    evicted.add_metric(["host"], counters.evicted_host_tokens)
    yield evicted
    prefetched = CounterMetricFamily(
        "kvflow_prefetched_tokens", "Tokens loaded ahead, by outcome.", labels=["outcome"]
    )
    for outcome, field in _PREFETCHED.items():
        prefetched.add_metric([outcome], getattr(counters, field))
    yield prefetched
    if sample.traffic is not None:
        copied = CounterMetricFamily(
            "kvflow_copied_bytes", "KV copied between the tiers.", labels=["direction"]
        )
        copied.add_metric(["h2d"], sample.traffic.h2d_bytes)
        copied.add_metric(["d2h"], sample.traffic.d2h_bytes)
        yield copied
        yield CounterMetricFamily(
            "kvflow_demand_bytes",
            "KV loaded for a call in hand.",
            value=sample.traffic.demand_bytes,
        )
        yield CounterMetricFamily(
            "kvflow_load_waits",
            "Prefill batches whose forward had to wait for a load.",
            value=sample.traffic.waits,
        )
        busy = CounterMetricFamily(
            "kvflow_link_busy_seconds", "Time that copies took.", labels=["direction"]
        )
        busy.add_metric(["h2d"], sample.traffic.h2d_busy_s)
        busy.add_metric(["d2h"], sample.traffic.d2h_busy_s)
        yield busy


def _gauges(sample: Sample) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    pool = GaugeMetricFamily("kvflow_pool_tokens", "Tokens of a tier.", labels=["tier", "part"])
    for tier, held in (("device", sample.device), ("host", sample.host)):
        for part in ("capacity", *_PARTS):
            if held is not None:
                pool.add_metric([tier, part], getattr(held, part))
    yield pool
    yield GaugeMetricFamily("kvflow_live_runs", "Runs that are live.", value=sample.live_runs)
    yield GaugeMetricFamily(
        "kvflow_bytes_per_token", "Bytes of KV of a token.", value=sample.bytes_per_token
    )
    yield GaugeMetricFamily("kvflow_tree_nodes", "Nodes of the tree.", value=sample.tree_nodes)
    yield GaugeMetricFamily(
        "kvflow_degraded", "1 after something of kvflow's failed.", value=int(sample.degraded)
    )
    mode = GaugeMetricFamily("kvflow_mode", "1 for the mode at work.", labels=["mode"])
    mode.add_metric([sample.mode], 1)
    yield mode


def _hits(sample: Sample) -> Iterator[Any]:
    from prometheus_client.core import CounterMetricFamily

    agent = ["workflow", "agent"]
    calls = CounterMetricFamily("kvflow_calls", "Calls admitted.", labels=agent)
    tokens = CounterMetricFamily(
        "kvflow_prompt_tokens", "Prompt tokens by where they were found.", labels=[*agent, "tier"]
    )
    for one in sample.hits:
        calls.add_metric([one.workflow, one.agent], one.calls)
        for tier, count in (("device", one.device), ("host", one.host), ("none", one.computed)):
            tokens.add_metric([one.workflow, one.agent, tier], count)
    yield calls
    yield tokens


def _ages(sample: Sample) -> Iterator[Any]:
    from prometheus_client.core import HistogramMetricFamily

    for series, counts, text in (
        ("kvflow_hit_age_seconds", sample.ages.hit_tokens, "Age of tokens that were found."),
        ("kvflow_evicted_age_seconds", sample.ages.evicted_tokens, "Age of evicted tokens."),
    ):
        yield HistogramMetricFamily(
            series, text, buckets=_buckets(sample.ages.bounds_s, counts), sum_value=None
        )


def _buckets(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    names = [*(f"{bound:g}" for bound in bounds), "+Inf"]
    return [(name, float(total)) for name, total in zip(names, accumulate(counts), strict=True)]
