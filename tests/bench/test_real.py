"""A whole bench with real servers, as small as one can be."""

import pytest
from support.bench import Silent

from kvflow.bench import document, session
from kvflow.bench.arms import choose
from kvflow.bench.local import LocalRig
from kvflow.bench.measure import Access
from kvflow.bench.plan import Effort
from kvflow.bench.result import Document
from kvflow.bench.setting import Setting, Suite
from kvflow.bench.stages import EMULATED
from kvflow.bench.suites.workflows import sequence

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


def test_bench_of_real_servers_measures_every_arm_and_where_its_prefixes_were():
    row = sequence("tiny", fixed=96, dynamic=8, output=2)
    setting = Setting(
        name="tiny", served=row, driven=row, pool_ratio=0.5, link_ratio=0.5, runs=1, concurrency=1
    )
    rig = LocalRig("cpu", None, Access(), flags=("--dtype", "float32"))
    outcome = session.Outcome(
        Suite("tiny", "", [setting]), choose("hicache,prefetch"), Effort(repeats=2)
    )
    session.run(outcome, rig, Silent())
    assert outcome.error is None
    assert outcome.broken == []
    found = document.result(outcome, {}, "", None)
    assert isinstance(found, Document)
    hicache, prefetch = found.arms["hicache"], found.arms["prefetch"]
    assert (hicache.repeats, prefetch.repeats) == (2, 2)
    # In a cycle with room for half of it LRU has lost what comes next, always.
    assert hicache.device_share < 0.1 < prefetch.device_share
    assert hicache.host_share > 0.9
    assert prefetch.engine["tagged_calls"] == 2 * 10
    assert prefetch.engine["prefetches"] > 0
    # In float32 a hit gives what a miss gives.
    assert found.setup["dtype"] == "float32"
    assert (hicache.mismatch, prefetch.mismatch) == (0, 0)
    assert found.setup["label"] == EMULATED
    assert found.setup["link_gbps"] > 0
