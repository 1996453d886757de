"""Prefetch on a real cache: what is loaded ahead, and that nobody reads it too early."""

from types import SimpleNamespace

import pytest
import support.engine  # noqa: F401 - before SGLang
from sglang.srt.mem_cache.pool_host import mha
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache
from support.mini_scheduler import MiniScheduler
from support.prefixes import evict_all, node_at
from support.real_cache import build
from support.tags import by

from kvflow.engine.cache import KvflowRadixCache
from kvflow.engine.cpu.link import Link

pytestmark = pytest.mark.engine

FIXED = 64
AGENTS = 3
POOL = 2 * FIXED + 40  # two prefixes and what a running call adds
ROW_BYTES = 2 * 2 * 2 * 4  # layers, keys and values, head size, fp32


def prompt(agent: int, tail: int = 0) -> list[int]:
    return [1000 * (agent + 1) + i for i in range(FIXED)] + [7, tail, 9]


def tag(agent: int, *, steps_of: dict[int, int] | None = None):
    steps = steps_of or {i: (i - agent) % AGENTS or AGENTS for i in range(AGENTS)}
    return by(f"a{agent}", FIXED, steps={f"a{i}": n for i, n in steps.items()})


@pytest.fixture
def scheduler():
    """Every agent has spoken once; a0's prefix is on the host alone, and a0 speaks next."""
    scheduler = MiniScheduler(build(tokens=POOL, host_ratio=4.0, settings={"mode": "evict"}))
    for agent in range(AGENTS):
        scheduler.serve(prompt(agent), tag(agent))
    yield scheduler
    scheduler.drain()
    scheduler.cache.sanity_check()


def on_device(scheduler: MiniScheduler, agent: int) -> bool:
    return not node_at(scheduler.cache, prompt(agent)[:FIXED]).evicted


def absent(scheduler: MiniScheduler) -> list[int]:
    return [agent for agent in range(AGENTS) if not on_device(scheduler, agent)]


def passes(scheduler: MiniScheduler, count: int = 1) -> None:
    """Scheduler passes that find what is complete, and wait for nothing."""
    for _ in range(count):
        scheduler.cache.check_hicache_events()


def in_prefetch(scheduler: MiniScheduler) -> MiniScheduler:
    scheduler.cache.switch("prefetch")
    return scheduler


def speak(scheduler: MiniScheduler, agent: int, tail: int = 1, answer: int = 8):
    """An agent's call comes and is prefilled; it goes on decoding."""
    req = scheduler.arrive(prompt(agent, tail), tag(agent), answer=answer)
    scheduler.prefill()
    return req


@pytest.fixture
def slow_link(monkeypatch):
    """Loading a prefix takes half a second."""
    link = Link(lambda: FIXED * ROW_BYTES / 0.5 / 1e9)
    monkeypatch.setattr(mha, "transfer_kv_direct", link.transfer_kv_direct)


def test_prefix_of_the_agent_that_comes_next_is_loaded_while_another_speaks(scheduler):
    (missing,) = absent(scheduler)
    before = (missing - 1) % AGENTS
    in_prefetch(scheduler)
    speak(scheduler, before)
    scheduler.drain()
    passes(scheduler)
    scheduler.acknowledge()
    assert on_device(scheduler, missing)
    outcomes = scheduler.cache.tree_core.outcomes
    assert (outcomes.issued, outcomes.used) == (FIXED, 0)
    scheduler.serve(prompt(missing, 2), tag(missing))
    assert scheduler.hits[-1][1:] == (FIXED, 0)
    assert (outcomes.used, outcomes.late, outcomes.wasted) == (FIXED, 0, 0)


@pytest.mark.parametrize("mode", ["off", "evict"])
def test_nothing_is_loaded_ahead_in_the_modes_before_prefetch(scheduler, mode):
    (missing,) = absent(scheduler)
    scheduler.cache.switch(mode)
    speak(scheduler, (missing - 1) % AGENTS)
    scheduler.drain()
    passes(scheduler, 3)
    assert scheduler.cache.tree_core.outcomes.issued == 0


def test_prefetch_takes_the_room_of_what_is_needed_later(scheduler):
    (missing,) = absent(scheduler)
    speaking = (missing - 1) % AGENTS
    in_prefetch(scheduler)
    speak(scheduler, speaking, answer=1)
    passes(scheduler)
    scheduler.acknowledge()
    # Who has just spoken is the farthest, so it is its prefix that went.
    assert absent(scheduler) == [speaking]


def test_prefetch_never_takes_what_is_needed_as_soon(scheduler):
    (missing,) = absent(scheduler)
    in_prefetch(scheduler)
    all_near = dict.fromkeys(range(AGENTS), 1)
    scheduler.serve(prompt(99), by("other", FIXED, steps={f"a{i}": 1 for i in all_near}))
    resident = [agent for agent in range(AGENTS) if on_device(scheduler, agent)]
    passes(scheduler, 3)
    scheduler.acknowledge()
    assert all(on_device(scheduler, agent) for agent in resident)
    assert missing in absent(scheduler)


def test_prefetch_waits_while_a_flush_is_pending(scheduler):
    (missing,) = absent(scheduler)
    flush = SimpleNamespace(timeout_s=1.5)
    in_prefetch(scheduler).flush_wrapper = SimpleNamespace(_pending=(flush, 0.0))
    speak(scheduler, (missing - 1) % AGENTS)
    passes(scheduler, 3)
    assert scheduler.cache.tree_core.outcomes.issued == 0


def test_prefetch_after_a_flush_that_was_given_up_starts_by_ticks_not_by_the_clock(scheduler):
    (missing,) = absent(scheduler)
    flush = SimpleNamespace(timeout_s=1.5)
    in_prefetch(scheduler).flush_wrapper = SimpleNamespace(_pending=(flush, 0.0))
    speak(scheduler, (missing - 1) % AGENTS)
    passes(scheduler)
    scheduler.flush_wrapper._pending = None  # which each rank finds for itself
    for _ in range(3):
        assert scheduler.cache.tree_core.outcomes.issued == 0
        passes(scheduler)
        scheduler.cache.tick()
    passes(scheduler)
    assert scheduler.cache.tree_core.outcomes.issued == FIXED


def test_prefetch_waits_while_a_call_that_waits_has_to_load(scheduler):
    (missing,) = absent(scheduler)
    in_prefetch(scheduler)
    waiting = scheduler.arrive(prompt(missing, 5), tag(missing))
    waiting.init_next_round_input(scheduler.cache)
    assert waiting.host_hit_length > 0
    passes(scheduler)
    assert scheduler.cache.tree_core.outcomes.issued == 0


def missing_is_next(scheduler: MiniScheduler) -> int:
    """A call has come after which the agent that is not on the device is next. Returns it."""
    (missing,) = absent(scheduler)
    before = (missing - 1) % AGENTS
    in_prefetch(scheduler).arrive(prompt(before, 5), tag(before))
    return missing


def test_prefetch_waits_for_a_call_that_is_new_and_has_to_load(scheduler):
    missing = missing_is_next(scheduler)
    scheduler.arrive(prompt(missing, 6), {})  # SGLang has not looked yet at what it can reuse
    passes(scheduler)
    assert scheduler.cache.tree_core.outcomes.issued == 0
    passes(scheduler)
    assert scheduler.cache.tree_core.outcomes.issued > 0


def test_prefetch_does_not_wait_for_ever_while_new_calls_come_with_every_pass(scheduler):
    missing_is_next(scheduler)
    for i in range(2):
        scheduler.arrive([40 + i] * 4, {})
        passes(scheduler)
    assert scheduler.cache.tree_core.outcomes.issued > 0


def test_prefetch_does_not_wait_for_a_call_that_is_new_and_whose_prefix_is_there(scheduler):
    missing_is_next(scheduler)
    passes(scheduler)
    assert scheduler.cache.tree_core.outcomes.issued > 0


def test_nothing_is_loaded_ahead_where_kvflow_decides_the_eviction_order_only():
    settings = {"mode": "prefetch"}
    made = build(tokens=POOL, host_ratio=4.0, settings=settings, policy="write_back")
    scheduler = MiniScheduler(made)
    for agent in [*range(AGENTS), 0, 1]:
        scheduler.serve(prompt(agent), tag(agent))
        passes(scheduler, 2)
    assert scheduler.cache.tree_core.outcomes.issued == 0


def test_prefetch_depth_zero_loads_nothing():
    settings = {"mode": "prefetch", "policy": {"prefetch_depth": 0}}
    scheduler = MiniScheduler(build(tokens=POOL, host_ratio=4.0, settings=settings))
    for agent in [*range(AGENTS), 0, 1]:
        scheduler.serve(prompt(agent), tag(agent))
        passes(scheduler, 2)
    assert scheduler.cache.tree_core.outcomes.issued == 0


def test_call_joins_the_prefetch_of_its_prefix_and_reads_what_was_written(scheduler, slow_link):
    (missing,) = absent(scheduler)
    in_prefetch(scheduler)
    speak(scheduler, (missing - 1) % AGENTS)
    passes(scheduler)
    core = scheduler.cache.tree_core
    assert core.is_arriving(node_at(scheduler.cache, prompt(missing)[:FIXED]).id)
    loads = core.outcomes.operations
    speak(scheduler, missing, tail=2)  # reads KV and compares it with what was written
    assert scheduler.hits[-1][1:] == (FIXED, 0)
    assert core.outcomes.operations == loads
    assert core.outcomes.late == FIXED


def test_without_the_fence_a_call_reads_what_has_not_arrived(scheduler, slow_link, monkeypatch):
    """The mutation that shows that the test above can fail."""
    monkeypatch.setattr(KvflowRadixCache, "lock", UnifiedRadixCache.lock)
    (missing,) = absent(scheduler)
    in_prefetch(scheduler)
    speak(scheduler, (missing - 1) % AGENTS)
    passes(scheduler)
    req = scheduler.arrive(prompt(missing, 2), tag(missing), answer=1)
    with pytest.raises(AssertionError, match="wrong KV"):
        scheduler.prefill()
    # The pass broke off in the middle: let the request end as an aborted one does.
    scheduler.cache.cache_controller.layer_done_counter.set_consumer(-1)
    req.kv.kv_committed_len = req.kv.kv_allocated_len
    scheduler.abort(req)


@pytest.fixture
def overtaken(slow_link, monkeypatch):
    """While a call computes what it might have loaded, a prefetch brings the same.

    Its log probabilities are wanted from the first token on, so SGLang lets it use no KV.
    """
    scheduler = MiniScheduler(build(tokens=2 * POOL, host_ratio=4.0, settings={"mode": "evict"}))
    for agent in range(AGENTS):
        scheduler.serve(prompt(agent), tag(agent))
    evict_all(scheduler.cache)
    in_prefetch(scheduler)
    req = scheduler.arrive(prompt(0, 5), answer=8)
    req.return_logprob, req.logprob_start_len = True, 0
    extend = scheduler._extend
    monkeypatch.setattr(scheduler, "_extend", lambda *batch: (extend(*batch), passes(scheduler, 2)))
    yield scheduler
    scheduler.drain()
    scheduler.cache.sanity_check()


def test_call_that_has_computed_what_a_prefetch_brings_reads_what_was_written(overtaken):
    overtaken.prefill()
    assert overtaken.hits[-1][1:] == (0, 0)
    core = overtaken.cache.tree_core
    assert core.is_arriving(node_at(overtaken.cache, prompt(0)[:FIXED]).id)
    overtaken.decode()  # reads KV and compares it with what was written


def test_without_the_second_fence_a_call_reads_what_has_not_arrived(overtaken, monkeypatch):
    """The mutation that shows that the test above can fail."""
    monkeypatch.setattr(KvflowRadixCache, "insert", UnifiedRadixCache.insert)
    overtaken.prefill()
    with pytest.raises(AssertionError, match="wrong KV"):
        overtaken.decode()
    overtaken.finish_copies()


def test_prefetched_kv_that_nobody_asked_for_is_counted_as_wasted(scheduler):
    (missing,) = absent(scheduler)
    in_prefetch(scheduler)
    speak(scheduler, (missing - 1) % AGENTS)
    scheduler.drain()
    passes(scheduler)
    scheduler.acknowledge()
    scheduler.cache.switch("off")
    for other in (50, 51):
        scheduler.serve(prompt(other))
    assert scheduler.cache.tree_core.outcomes.wasted == FIXED


def test_prefetch_stops_with_the_mode_and_starts_again(scheduler):
    (missing,) = absent(scheduler)
    speak(scheduler, (missing - 1) % AGENTS)
    scheduler.drain()
    passes(scheduler)
    assert scheduler.cache.tree_core.outcomes.issued == 0
    in_prefetch(scheduler)
    passes(scheduler)
    assert scheduler.cache.tree_core.outcomes.issued == FIXED


def test_prefetch_is_at_its_end_once_the_cache_has_to_be_quiet(scheduler, slow_link):
    (missing,) = absent(scheduler)
    in_prefetch(scheduler)
    speak(scheduler, (missing - 1) % AGENTS)
    passes(scheduler)
    assert scheduler.cache.ongoing_load_back
    scheduler.cache.finish_prefetches()
    assert not scheduler.cache.ongoing_load_back
    assert on_device(scheduler, missing)


def test_prefetch_goes_on_while_what_waits_cannot_be_admitted(scheduler, monkeypatch):
    (missing,) = absent(scheduler)
    in_prefetch(scheduler)
    speak(scheduler, (missing - 1) % AGENTS)
    waits = scheduler.arrive(prompt(50), None)
    waits.host_hit_length = 10  # as it was found once
    passes(scheduler, 3)
    assert scheduler.cache.tree_core.outcomes.issued == 0
    with monkeypatch.context() as patched:
        full = SimpleNamespace(reqs=scheduler.running, batch_is_full=True)
        patched.setattr(MiniScheduler, "running_batch", full)
        passes(scheduler, 2)
    assert scheduler.cache.tree_core.outcomes.issued == FIXED
