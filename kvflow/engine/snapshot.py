"""Taking a frame of a scheduler, on its own thread, without touching what it looks at.

No match, no access time, no hit count: nodes are read as they stand. A frame costs as much as it
shows, however large the tree is: a look walks it breadth first to the number of nodes asked for,
and a watch takes the nodes that changed.
"""

import os
import time
from collections import deque
from typing import Any, NamedTuple

import torch

from kvflow.engine import frame_parts
from kvflow.engine.cache import KvflowRadixCache
from kvflow.engine.node_records import Records
from kvflow.engine.snapshot_limits import MOST_CHANGED_NODES, MOST_NEWS, MOST_NODES
from kvflow.frames import EvictionRecord, Frame, Node, PrefetchRecord

BOOT = os.urandom(8).hex()
"""Of this process; another scheduler has another."""
_BEGAN = time.monotonic()


class _Told(NamedTuple):
    """What one frame says that another does not."""

    seq: int
    nodes: tuple[Node, ...]
    left_out: bool
    evictions: tuple[EvictionRecord, ...]
    prefetches: tuple[PrefetchRecord, ...]
    gone: tuple[int, ...] = ()
    delta_since: int | None = None


def take(scheduler: Any, most_nodes: int) -> Frame:
    """A frame of this rank, by itself.

    Args:
        scheduler: SGLang's Scheduler.
        most_nodes: how many nodes of the tree to show, the ones nearest the root first.

    Raises:
        ValueError: fewer than 0 nodes, or more than MOST_NODES.
    """
    if not 0 <= most_nodes <= MOST_NODES:
        raise ValueError(f"nodes={most_nodes} is not within 0..{MOST_NODES}")
    cache: KvflowRadixCache = scheduler.tree_cache
    records = Records(cache)
    found: list[Any] = []
    todo = deque(cache.tree_core.root_node.children.values())
    while todo and len(found) < most_nodes:
        node = todo.popleft()
        found.append(node)
        todo.extend(node.children.values())
    core = cache.tree_core
    told = _Told(
        core.watch.number(),
        records.of(found),
        bool(todo),
        tuple(core.ledger.latest),
        core.outcomes.latest(),
    )
    return _frame(scheduler, told)


def follow(scheduler: Any, since: int) -> Frame:
    """The next frame of a watch: what changed after the frame of that number.

    Watching begins with a `since` that is not the number of the last such frame. That frame has
    nothing of what may be much; all nodes of the tree, all evictions and all prefetches that are
    remembered are news from then on, and come so many a frame (`snapshot_limits`), nodes in no
    order of depth. Where `nodes_left_out`, news are left for the next. Watching ends by itself
    (`Watch`).
    """
    cache: KvflowRadixCache = scheduler.tree_cache
    core = cache.tree_core
    watch, ledger, outcomes = core.watch, core.ledger, core.outcomes
    if not watch.follows(since):
        watch.begin(core._node_arena, core.root_node.id)
        ledger.all_is_news()
        outcomes.all_is_news()
        watch.seq = watch.number()
        return _frame(scheduler, _Told(watch.seq, (), True, (), ()))
    changed = watch.take(MOST_CHANGED_NODES)
    watch.seq = watch.number()
    told = _Told(
        seq=watch.seq,
        nodes=Records(cache).of(core._node_arena[node] for node in changed),
        evictions=ledger.take_news(MOST_NEWS),
        prefetches=outcomes.take_news(MOST_NEWS),
        left_out=watch.has_news or ledger.has_news or outcomes.has_news,
        gone=watch.take_gone(),
        delta_since=since,
    )
    return _frame(scheduler, told)


def _frame(scheduler: Any, told: _Told) -> Frame:
    cache: KvflowRadixCache = scheduler.tree_cache
    return Frame(
        mode=cache.mode,
        page_size=cache.page_size,
        bytes_per_token=cache.bytes_per_token,
        untagged_steps=cache.untagged_steps,
        untagged_spare=frame_parts.untagged_spare(cache),
        device=frame_parts.device_pool(cache),
        host=frame_parts.host_pool(cache),
        running=len(scheduler.running_batch.reqs),
        waiting=len(scheduler.waiting_queue),
        runs=cache.calls.table.live_runs,
        nodes=told.nodes,
        nodes_left_out=told.left_out,
        agents=frame_parts.agents(cache),
        evictions=told.evictions,
        counters=frame_parts.counters(cache),
        degraded=cache.degraded,
        limits=cache.limits,
        seq=told.seq,
        boot=BOOT,
        time_s=time.time(),
        delta_since=told.delta_since,
        gone=told.gone,
        tree_nodes=len(cache.tree_core._node_arena) - 1,
        waiting_calls=frame_parts.waiting_calls(scheduler),
        prefetches=told.prefetches,
        run_states=frame_parts.run_states(cache),
        traffic=frame_parts.traffic(cache),
        ages=frame_parts.ages(cache),
        model=frame_parts.model(scheduler.server_args.model_path),
        uptime_s=time.monotonic() - _BEGAN,
        runs_on=torch.device(cache.token_to_kv_pool_allocator.device).type,
    )
