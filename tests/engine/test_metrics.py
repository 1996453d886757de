import os
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import support.engine  # noqa: F401 - before SGLang
from prometheus_client import CollectorRegistry, generate_latest
from support.going_round import GoingRound
from support.prefixes import PREFIX, PROMPT, evict_all, scheduler
from support.tags import by

from kvflow.engine import metrics
from kvflow.engine.metrics import Collector
from kvflow.engine.metrics_sample import take
from kvflow.recipe.model import Recipe
from kvflow.runs.table import Limits

pytestmark = pytest.mark.engine

RECIPE = Recipe.model_validate(
    {"kvflow": 1, "name": "work", "agents": {"a": {"prompt": "x"}, "b": {"prompt": "y"}}}
)


def shown(mini: Any) -> dict[str, float]:
    """What a scrape shows: value by series with its labels."""
    registry = CollectorRegistry()
    collector = Collector()
    registry.register(collector)  # type: ignore[arg-type]
    collector.sample = take(mini)
    lines = generate_latest(registry).decode().splitlines()
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    }


def test_nothing_is_shown_before_the_first_tick():
    registry = CollectorRegistry()
    registry.register(Collector())  # type: ignore[arg-type]
    assert generate_latest(registry) == b""


def test_prompt_tokens_are_shown_by_agent_and_tier():
    mini = scheduler()
    mini.cache.calls.serve(RECIPE, {})
    mini.serve(PROMPT, by("a", 30))
    mini.serve([*PREFIX, 7, 7], by("a", 30))
    evict_all(mini.cache)
    mini.serve([*PREFIX, 8, 8], by("b", 30))
    series = shown(mini)

    def tokens(agent: str, tier: str) -> float:
        labels = f'agent="{agent}",tier="{tier}",workflow="work"'
        return series[f"kvflow_prompt_tokens_total{{{labels}}}"]

    assert [tokens("a", tier) for tier in ("device", "host", "none")] == [30, 0, 35 + 2]
    assert [tokens("b", tier) for tier in ("device", "host", "none")] == [0, 30, 2]
    assert series['kvflow_calls_total{agent="a",workflow="work"}'] == 2


def test_agents_that_are_not_registered_share_one_label():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    mini.serve(PROMPT, by("secret", 30, client="secret"))
    mini.serve(PROMPT)
    series = shown(mini)
    assert series['kvflow_calls_total{agent="other",workflow="other"}'] == 3
    assert "secret" not in str(series)


def test_ages_are_a_histogram_over_tokens():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    mini.serve([*PREFIX, 7, 7], by("a", 30))
    evict_all(mini.cache)
    series = shown(mini)
    assert series['kvflow_hit_age_seconds_bucket{le="+Inf"}'] == 30
    assert series['kvflow_evicted_age_seconds_bucket{le="+Inf"}'] == 30  # spent tails do not count
    assert series['kvflow_hit_age_seconds_bucket{le="10000"}'] == 30


def test_counters_pools_and_state_are_shown():
    mini = scheduler(tokens=256)
    mini.serve(PROMPT, by("a", 30))
    mini.serve(PROMPT, {"kvflow": 7})
    evict_all(mini.cache)
    series = shown(mini)
    assert series["kvflow_tagged_calls_total"] == 1
    assert series['kvflow_bad_hints_total{reason="not_a_map"}'] == 1
    assert series['kvflow_evicted_tokens_total{tier="device"}'] > 0
    assert series['kvflow_pool_tokens{part="capacity",tier="device"}'] == 256
    assert series['kvflow_prefetched_tokens_total{outcome="used"}'] == 0
    assert series['kvflow_copied_bytes_total{direction="d2h"}'] > 0
    assert series['kvflow_mode{mode="evict"}'] == 1
    assert series["kvflow_degraded"] == 0


def test_runs_that_went_because_of_a_limit_are_shown():
    mini = scheduler()
    mini.cache.calls.table.limits = Limits(runs_per_client=2)
    for run in ("r1", "r2", "r3"):
        mini.serve(PROMPT, by("a", 30, run=run, steps={"a": 1}))
    assert shown(mini)["kvflow_evicted_runs_total"] == 1


def test_copies_are_shown_with_what_they_took_and_who_waited():
    made = GoingRound(1, "evict")
    for turn in range(16):
        if turn == 8:
            made.cache.switch("prefetch")
        made.serve(turn)
    series, outcomes = shown(made.mini), made.outcomes
    assert series["kvflow_prefetches_total"] == outcomes.operations > 0
    for outcome, tokens in (("started", outcomes.issued), ("used", outcomes.used)):
        assert series[f'kvflow_prefetched_tokens_total{{outcome="{outcome}"}}'] == tokens > 0
    assert series["kvflow_load_waits_total"] == made.cache.traffic.waits > 0
    for direction in ("h2d", "d2h"):
        assert series[f'kvflow_copied_bytes_total{{direction="{direction}"}}'] > 0
        assert 0 < series[f'kvflow_link_busy_seconds_total{{direction="{direction}"}}'] < 60
    assert series["kvflow_bytes_per_token"] == made.cache.bytes_per_token > 0


def test_every_series_is_kvflows_and_has_words():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    registry, collector = CollectorRegistry(), Collector()
    registry.register(collector)  # type: ignore[arg-type]
    collector.sample = take(mini)
    text = generate_latest(registry).decode()
    families = re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE)
    assert len(families) > 20
    assert all(name.startswith("kvflow_") and words for name, words in families)


def test_series_stand_beside_sglangs_in_metrics_where_these_are_on(tmp_path):
    script = (
        "import asyncio, sys\n"
        "from types import SimpleNamespace\n"
        "from prometheus_client import Counter\n"
        "from kvflow.engine import metrics\n"
        "Counter('sglang:own', 'of SGLang').inc(3)\n"
        "class One(metrics.Collector):\n"
        "    def collect(self):\n"
        "        from prometheus_client.core import GaugeMetricFamily\n"
        "        yield GaugeMetricFamily('kvflow_one', 'one', value=1)\n"
        "route = SimpleNamespace(path='/metrics', app=None)\n"
        "metrics.mount(SimpleNamespace(routes=[route]), One())\n"
        "sent = []\n"
        "async def send(message): sent.append(message)\n"
        "async def receive(): return {'type': 'http.request', 'body': b''}\n"
        "scope = {'type': 'http', 'method': 'GET', 'headers': [], 'query_string': b''}\n"
        "asyncio.run(route.app(scope, receive, send))\n"
        "print(sent[1]['body'].decode())\n"
    )
    environ = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True
    )
    assert "sglang:own_total 3.0" in done.stdout
    assert "kvflow_one 1.0" in done.stdout


def test_without_sglangs_metrics_nothing_is_mounted():
    route = SimpleNamespace(path="/health", app=None)
    metrics.mount(SimpleNamespace(routes=[route]), Collector())
    assert route.app is None
