"""SGLang's ring of three layer counters: prefetches beside the loads of two batches."""

import pytest
import support.engine  # noqa: F401 - before SGLang
from sglang.srt.mem_cache.pool_host import mha
from support.going_round import GoingRound

from kvflow.engine.cpu.link import Link

pytestmark = pytest.mark.engine

AGENTS = 10
COPY_S = 0.3


@pytest.fixture
def full_ring(monkeypatch):
    """Three loads are on their way: a prefetch, and those of a running batch and the next one.

    Another agent is as near as the prefetched one, and its prefix is on the host alone.
    """
    made = GoingRound(1, "evict", agents=AGENTS, tokens=7 * 64, prefetch_tokens=64)
    for turn in range(AGENTS):
        made.serve(turn)
    absent = [agent for agent in range(AGENTS) if not made.on_device(agent)]
    resident = next(agent for agent in range(AGENTS) if made.on_device(agent))
    first, second, third, another = absent[:4]
    gbps = made.fixed * made.cache.bytes_per_token / COPY_S / 1e9
    monkeypatch.setattr(mha, "transfer_kv_direct", Link(lambda: gbps).transfer_kv_direct)
    made.cache.switch("prefetch")
    made.arrive(resident, answer=40, steps={f"a{first}": 1, f"a{another}": 1})
    made.mini.prefill()
    made.cache.check_hicache_events()
    assert made.cache.tree_core.is_arriving(made.end_of(first))
    for agent in (second, third):
        made.cache.load_back(made.end_of(agent))
        assert made.cache.ready_to_load_host_cache() >= 0
    assert len(made.cache.cache_controller.ack_load_queue) == 3
    yield made
    made.mini.acknowledge()
    made.mini.drain()
    made.cache.sanity_check()


def test_prefetch_waits_until_no_load_is_on_its_way(full_ring):
    for _ in range(3):
        full_ring.cache.check_hicache_events()
    assert full_ring.outcomes.operations == 1
    full_ring.mini.finish_copies()
    for _ in range(2):
        full_ring.cache.check_hicache_events()
    assert full_ring.outcomes.operations == 2


def test_prefetch_that_waited_for_nothing_would_break_the_ring(full_ring, monkeypatch):
    with monkeypatch.context() as unfenced:
        unfenced.setattr(full_ring.cache.prefetcher, "_link_is_free", lambda: True)
        with pytest.raises(AssertionError, match="Producer finish event"):
            full_ring.cache.check_hicache_events()
