"""What a frame says besides its nodes: agents, calls, runs, pools, counters."""

from collections import Counter
from itertools import islice
from typing import Any, NamedTuple

from sglang.srt.mem_cache.unified_cache.components import ComponentType

from kvflow import frames
from kvflow.engine.ages import BOUNDS_S
from kvflow.engine.cache import KvflowRadixCache
from kvflow.engine.marks import Owner
from kvflow.engine.snapshot_limits import MOST_AGENTS, MOST_RUNS, MOST_WAITING
from kvflow.frames import AgentState, Pool, RunState, WaitingCall
from kvflow.policy.share import UNLIMITED

_FULL = ComponentType.FULL


_MOST_PREFIXES = 4 * MOST_AGENTS  # that are looked at to find agents without a live run
_MOST_OF_ONE = 4  # prefixes of one agent, for as many of its tenants, to find its longest


def agents(cache: KvflowRadixCache) -> tuple[AgentState, ...]:
    """The agents of live runs, then those of whom a prefix stands; the first MOST_AGENTS."""
    table = cache.calls.table
    in_flight = Counter((call.tag.client, call.tag.agent) for call in cache.calls.in_flight())
    shown: dict[Owner, int | None] = {
        (client, agent): steps for client, agent, steps in islice(table.steps(), MOST_AGENTS)
    }
    for owner in islice(cache.marks.agents(), _MOST_PREFIXES):
        shown.setdefault(owner, None)
    return tuple(
        _agent(cache, owner, shown[owner], in_flight[owner]) for owner in islice(shown, MOST_AGENTS)
    )


class Prefix(NamedTuple):
    """What stands of an agent's fixed prefix, in tokens."""

    tokens: int
    device: int
    host: int  # on the host alone
    end: int | None


def _longest(cache: KvflowRadixCache, owner: Owner) -> Prefix:
    marks = cache.marks.of(owner, cache.salts.of(owner[0]))
    ends = (cache.tree_core.ranks.end(mark) for mark in islice(marks, _MOST_OF_ONE))
    prefixes = (_prefix(cache, end) for end in ends if end is not None)
    return max(prefixes, key=lambda prefix: prefix.tokens, default=Prefix(0, 0, 0, None))


def _prefix(cache: KvflowRadixCache, end: int) -> Prefix:
    device = host = 0
    for node in cache.tree_core.path(end):
        if node.evicted:
            host += len(node.key)
        else:
            device += len(node.key)
    return Prefix(device + host, device, host, end)


def _agent(cache: KvflowRadixCache, owner: Owner, steps: int | None, in_flight: int) -> AgentState:
    hits, prefix = cache.tree_core.ledger.hits.of(owner), _longest(cache, owner)
    return AgentState(
        client=owner[0],
        agent=owner[1],
        steps=steps,
        runs=cache.calls.table.waiting(*owner),
        in_flight=in_flight,
        prefix_tokens=prefix.tokens,
        device_tokens=prefix.device,
        host_tokens=prefix.host,
        end=prefix.end,
        calls=hits.calls,
        hit_device_tokens=hits.device_tokens,
        hit_host_tokens=hits.host_tokens,
        computed_tokens=hits.computed_tokens,
        doubted=steps is not None and cache.prefetcher.doubts(owner, steps),
    )


def model(path: str) -> str:
    """What a model is called: no folder, address or key that leads to it is shown.

    Args:
        path: of a folder, a name on a hub, or a URL.
    """
    bare, _, _ = path.partition("?")
    return bare.rstrip("/").rpartition("/")[2]


def waiting_calls(scheduler: Any) -> tuple[WaitingCall, ...]:
    """The first calls of the waiting queue, in queue order."""
    cache: KvflowRadixCache = scheduler.tree_cache
    found = []
    for req in scheduler.waiting_queue[:MOST_WAITING]:
        call = cache.calls.get(req.rid)
        tag = call.tag if call is not None else None
        found.append(
            WaitingCall(
                agent=f"{tag.client}/{tag.agent}" if tag else "",
                run=tag.run if tag else "",
                prompt_tokens=len(req.origin_input_ids),
                device_tokens=req.prefix_len,
                host_tokens=req.host_hit_length,
                deferred_passes=cache.deferrals.count(req.rid),
            )
        )
    return tuple(found)


def run_states(cache: KvflowRadixCache) -> tuple[RunState, ...]:
    """The first live runs, oldest client and oldest run first."""
    return tuple(
        RunState(
            client=run.client,
            workflow=run.workflow,
            run=run.run,
            in_flight=dict(run.in_flight),
            steps=dict(run.steps),
            idle_ticks=run.idle_ticks,
            expected=run.is_expected,
        )
        for run in islice(cache.calls.table.runs(), MOST_RUNS)
    )


def device_pool(cache: KvflowRadixCache) -> Pool:
    """The pool of the device."""
    return Pool(
        capacity=cache.token_to_kv_pool_allocator.size,
        free=cache.token_to_kv_pool_allocator.available_size(),
        evictable=cache.tree_core.component_evictable_size_[_FULL],
        locked=cache.tree_core.component_protected_size_[_FULL],
    )


def host_pool(cache: KvflowRadixCache) -> Pool | None:
    """The pool of the host; None without one."""
    if cache.cache_controller is None:
        return None
    pool = cache.cache_controller.mem_pool_host
    free = pool.available_size()
    in_use = pool.size - free
    # A node that was cut while it is written is two in this list.
    pending = cache.ongoing_write_through.values()
    writing = [node for write in pending for node in write.publish_node_ids]
    locked = min(in_use, cache.tree_core.moving_tokens(writing))
    return Pool(capacity=pool.size, free=free, evictable=in_use - locked, locked=locked)


def untagged_spare(cache: KvflowRadixCache) -> int | None:
    """Tokens of untagged KV that go before the rest of it is spared; None: nothing is spared."""
    spare = cache.tree_core.share.spare
    return None if cache.mode == "off" or spare == UNLIMITED else spare


def traffic(cache: KvflowRadixCache) -> frames.Traffic | None:
    """What was copied between the tiers; None without a host tier."""
    if cache.cache_controller is None:
        return None
    return cache.traffic.frame(cache.cache_controller, cache.bytes_per_token)


def ages(cache: KvflowRadixCache) -> frames.Ages:
    """For how long KV had not been used."""
    known = cache.tree_core.ledger.ages
    return frames.Ages(
        bounds_s=BOUNDS_S,
        hit_tokens=tuple(known.hit_tokens),
        evicted_tokens=tuple(known.evicted_tokens),
    )


def counters(cache: KvflowRadixCache) -> frames.Counters:
    """What happened since the start."""
    counts, table, core = cache.calls.counts, cache.calls.table.counters, cache.tree_core
    ledger, outcomes = core.ledger, core.outcomes
    return frames.Counters(
        tagged_calls=counts.tagged,
        untagged_calls=counts.untagged,
        unexpected_calls=table.unexpected,
        unknown_agents=table.unknown,
        other_prompt=cache.calls.prompts.other_prompt,
        bad_hints=dict(counts.bad_hints),
        evicted_device_tokens=ledger.evicted_tokens["device"],
        evicted_host_tokens=ledger.evicted_tokens["host"],
        not_backed_up_tokens=ledger.not_backed_up_tokens,
        expired_runs=table.expired,
        evicted_runs=table.evicted,
        prefetches=outcomes.operations,
        prefetched_tokens=outcomes.issued,
        prefetched_used_tokens=outcomes.used,
        prefetched_late_tokens=outcomes.late,
        prefetched_wasted_tokens=outcomes.wasted,
        doubted_hints=cache.prefetcher.doubted,
        deferred_calls=cache.deferrals.calls,
        deferred_passes=cache.deferrals.passes,
        hit_device_tokens=ledger.hits.total.device_tokens,
        hit_host_tokens=ledger.hits.total.host_tokens,
        computed_tokens=ledger.hits.total.computed_tokens,
        regretted_tokens=ledger.regretted_tokens,
    )
