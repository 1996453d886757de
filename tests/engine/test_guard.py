"""What fails in kvflow's tracking costs its part, and nothing else."""

import logging

import pytest
import support.engine  # noqa: F401 - before SGLang
from support.mini_scheduler import MiniScheduler
from support.real_cache import build
from support.tags import by

pytestmark = pytest.mark.engine


def broken(*_args: object, **_kwargs: object) -> None:
    raise RuntimeError("a mistake")


@pytest.mark.parametrize(
    "method",
    [
        "arrive",
        "finish",
        "place",
        "matched",
        "settle",
        "set_steps",
        "tick",
        "plan",
        "used",
    ],
)
def test_failure_in_tracking_is_logged_once_and_calls_go_on(method, monkeypatch, caplog):
    scheduler = MiniScheduler(build(tokens=200, settings={"mode": "prefetch"}))
    scheduler.may_give_up = True
    cache = scheduler.cache
    for owner in (cache.calls, cache.tree_core, cache.calls.table, cache.prefetcher):
        if hasattr(owner, method):
            monkeypatch.setattr(owner, method, broken)
    with caplog.at_level(logging.ERROR, logger="kvflow.engine.guard"):
        for agent in range(6):
            steps = {f"a{other}": (other - agent) % 6 or 6 for other in range(6)}
            tokens = [100 * agent + n for n in range(50)]
            scheduler.serve(tokens, by(f"a{agent}", 40, steps=steps))
            cache.tick()
    assert len(caplog.records) == 1
    assert cache.degraded
    assert cache.mode == "off"
    cache.sanity_check()


def test_mode_stays_off_once_degraded():
    cache = build(tokens=200, settings={"mode": "evict"})
    cache.give_up()
    cache.switch("prefetch")
    assert cache.mode == "off"
