from typing import Any

import pytest
import support.engine  # noqa: F401 - before SGLang
from sglang.srt.mem_cache.base_prefix_cache import EvictParams
from support.audit import Recorder
from support.mini_scheduler import MiniScheduler
from support.real_cache import Core, build, nodes
from support.traffic import SIZES, Traffic

pytestmark = pytest.mark.engine

OPERATIONS = 500


def record(
    core: Core, page: int, mode: str, tagged: float, policy: str = "write_through"
) -> tuple[MiniScheduler, Recorder | None]:
    """The same random traffic through one core or another."""
    tokens, longest = SIZES[page]
    cache = build(
        page, tokens=tokens, host_ratio=1.5, core=core, policy=policy, settings={"mode": mode}
    )
    # The Rust core shows no nodes.
    recorder = None if core == "rust" else Recorder(cache)
    scheduler = MiniScheduler(cache, chunk=longest // 2)
    traffic = Traffic(scheduler, seed=page, longest=longest, tagged=tagged, switches=False)
    for _ in range(OPERATIONS):
        traffic.step()
    return scheduler, recorder


@pytest.mark.parametrize("page", SIZES)
@pytest.mark.parametrize(("mode", "tagged"), [("full", 0.0), ("off", 0.7)])
def test_victims_without_hints_are_those_of_sglang_on_both_tiers(page, mode, tagged):
    _, stock = record("python", page, mode, tagged)
    _, ours = record("kvflow", page, mode, tagged)
    assert stock is not None
    assert ours is not None
    assert {victim.tier for victim in stock.victims} == {"device", "host"}
    assert ours.victims == stock.victims


def test_victims_in_write_back_without_hints_are_those_of_sglang():
    _, stock = record("python", 1, "prefetch", 0.0, policy="write_back")
    _, ours = record("kvflow", 1, "prefetch", 0.0, policy="write_back")
    assert stock is not None
    assert ours is not None
    assert ours.victims == stock.victims


@pytest.mark.parametrize("page", SIZES)
def test_hits_without_hints_are_those_of_the_rust_core(page):
    ours, _ = record("kvflow", page, "prefetch", 0.0)
    rust, _ = record("rust", page, "prefetch", 0.0)
    for tier in (1, 2):
        found = sum(hit[tier] for hit in ours.hits)
        expected = sum(hit[tier] for hit in rust.hits)
        assert expected > 0
        assert found == pytest.approx(expected, rel=0.01)


def test_eviction_of_more_than_there_is_ends_with_an_empty_device():
    scheduler = MiniScheduler(build(1, tokens=128))
    for prompt in ([1] * 20, [2] * 20, [1] * 10 + [3] * 10):
        scheduler.serve(prompt)
    scheduler.cache.evict(EvictParams(num_tokens=10_000))
    assert scheduler.cache.evictable_size() == 0
    assert scheduler.cache.token_to_kv_pool_allocator.available_size() == 128


def test_eviction_takes_no_more_than_it_needs():
    scheduler = MiniScheduler(build(1, tokens=128))
    for word in range(4):
        scheduler.serve([word] * 20, answer=1)
    scheduler.cache.evict(EvictParams(num_tokens=30))
    assert scheduler.cache.evictable_size() == 40


@pytest.mark.parametrize("state", ["written", "read", "running"])
def test_eviction_leaves_what_is_copied_or_in_use(state):
    """Invariants 19 and 22."""
    cache = build(1, tokens=128)
    scheduler = MiniScheduler(cache)
    if state == "read":
        scheduler.serve([1] * 20, answer=1)
        cache.evict(EvictParams(num_tokens=128))
    scheduler.arrive([1] * 20 + [2], answer=4 if state == "running" else 1)
    scheduler.prefill()
    if state == "running":
        scheduler.acknowledge()
    tiers = {node.id: (node.evicted, node.backuped) for node in nodes(cache)}
    assert bool(cache.ongoing_write_through) == (state != "running")
    assert bool(cache.ongoing_load_back) == (state == "read")
    cache.evict(EvictParams(num_tokens=128))
    cache.evict_host(256)
    assert {node.id: (node.evicted, node.backuped) for node in nodes(cache)} == tiers
    scheduler.drain()
    cache.evict(EvictParams(num_tokens=128))
    cache.evict_host(256)
    assert list(nodes(cache)) == []


def test_eviction_goes_on_to_a_parent_that_became_a_leaf():
    scheduler = MiniScheduler(build(1, tokens=128))
    scheduler.serve([1] * 20 + [2] * 5, answer=1)
    scheduler.serve([1] * 20 + [3] * 5, answer=1)
    recorder = Recorder(scheduler.cache)
    scheduler.cache.evict(EvictParams(num_tokens=30))
    paths = [victim.path for victim in recorder.victims]
    assert [len(path) for path in paths] == [25, 25, 20]


def test_host_eviction_frees_what_is_asked_and_keeps_the_youngest():
    scheduler = MiniScheduler(build(1, tokens=128))
    for word in range(3):
        scheduler.serve([word] * 20, answer=1)
    scheduler.cache.evict(EvictParams(num_tokens=128))
    recorder = Recorder(scheduler.cache)
    assert scheduler.cache.evict_host(25) == 40
    assert [victim.path[0] for victim in recorder.victims] == [0, 1]
    assert [node.key.token_ids[0] for node in nodes(scheduler.cache)] == [2]


def node_that_cannot_be_written_back() -> tuple[Any, Any, Any]:
    """A device leaf whose copy finds no room, above a host leaf that is in use."""
    cache = build(1, tokens=64, host_ratio=0.5, policy="write_back", settings={"mode": "evict"})
    scheduler = MiniScheduler(cache)
    scheduler.serve([1] * 25 + [2] * 11, answer=1)
    scheduler.serve([1] * 25 + [3], answer=1)
    prefix, tail, _ = sorted(nodes(cache), key=lambda node: len(node.key), reverse=True)
    cache.evict(EvictParams(num_tokens=12))
    assert tail.evicted
    lock = cache.inc_host_lock_ref(tail.id).to_dec_params()
    cache.evict(EvictParams(num_tokens=1))
    assert not prefix.evicted
    return cache, prefix, (tail.id, lock)


def test_victim_that_could_not_be_written_back_is_taken_by_a_later_eviction():
    cache, prefix, lock = node_that_cannot_be_written_back()
    cache.dec_host_lock_ref(*lock)
    cache.evict(EvictParams(num_tokens=1))
    assert prefix.evicted or prefix not in nodes(cache)


def test_victims_of_equal_worth_go_least_recently_used_first():
    scheduler = MiniScheduler(build(1, tokens=128))
    for word in (0, 1, 2, 0):
        scheduler.serve([word] * 20, answer=1)
    recorder = Recorder(scheduler.cache)
    scheduler.cache.evict(EvictParams(num_tokens=60))
    # The last token of a prompt is always computed, so asking again has cut the first in two.
    assert [victim.path[0] for victim in recorder.victims] == [1, 2, 0, 0]
