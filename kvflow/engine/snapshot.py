"""Taking a frame of a scheduler, on its own thread, without touching what it looks at.

No match, no access time, no hit count: nodes are read as they stand. A frame costs as much as it
shows, however large the tree is: a look walks it breadth first to the number of nodes asked for,
and a watch takes the nodes that changed.
"""

import os
import time
from collections import deque
from typing import Any, NamedTuple

from kvflow.engine import frame_parts
from kvflow.engine.cache import KvflowRadixCache
from kvflow.engine.node_records import Records, owners_by_node
from kvflow.engine.snapshot_limits import MOST_CHANGED_NODES, MOST_NODES
from kvflow.frames import Frame, Node

_BOOT = os.urandom(8).hex()


class _Nodes(NamedTuple):
    """What a frame says of the tree."""

    nodes: tuple[Node, ...]
    left_out: bool
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
    records = Records(cache, owners_by_node(cache))
    found: list[Any] = []
    todo = deque(cache.tree_core.root_node.children.values())
    while todo and len(found) < most_nodes:
        node = todo.popleft()
        found.append(node)
        todo.extend(node.children.values())
    return _frame(scheduler, cache.tree_core.watch.number(), _Nodes(records.of(found), bool(todo)))


def follow(scheduler: Any, since: int) -> Frame:
    """The next frame of a watch: the nodes that changed after the frame of that number.

    Watching begins with a `since` that is not the number of the last such frame: all nodes of the
    tree are news then, and come MOST_CHANGED_NODES a frame, in no order of depth. It ends by itself
    (`Watch`).
    """
    cache: KvflowRadixCache = scheduler.tree_cache
    core = cache.tree_core
    watch, arena = core.watch, core._node_arena
    owners = owners_by_node(cache)
    known = since if watch.follows(since) else None
    if known is None:
        watch.begin(arena, core.root_node.id)
    watch.own(owners)
    changed, left_out = watch.take(MOST_CHANGED_NODES)
    nodes = Records(cache, owners).of(arena[node] for node in changed)
    watch.seq = cache.tree_core.watch.number()
    return _frame(scheduler, watch.seq, _Nodes(nodes, left_out, watch.take_gone(), known))


def _frame(scheduler: Any, seq: int, tree: _Nodes) -> Frame:
    cache: KvflowRadixCache = scheduler.tree_cache
    token_bytes = frame_parts.bytes_per_token(cache)
    return Frame(
        mode=cache.mode,
        page_size=cache.page_size,
        bytes_per_token=token_bytes,
        untagged_steps=cache.untagged_steps,
        device=frame_parts.device_pool(cache),
        host=frame_parts.host_pool(cache),
        running=len(scheduler.running_batch.reqs),
        waiting=len(scheduler.waiting_queue),
        runs=cache.calls.table.live_runs,
        nodes=tree.nodes,
        nodes_left_out=tree.left_out,
        agents=frame_parts.agents(cache),
        evictions=tuple(cache.tree_core.ledger.latest),
        counters=frame_parts.counters(cache),
        degraded=cache.degraded,
        seq=seq,
        boot=_BOOT,
        time_s=time.time(),
        delta_since=tree.delta_since,
        gone=tree.gone,
        tree_nodes=len(cache.tree_core._node_arena) - 1,
        waiting_calls=frame_parts.waiting_calls(scheduler),
        prefetches=cache.tree_core.outcomes.latest(),
        run_states=frame_parts.run_states(cache),
        traffic=frame_parts.traffic(cache, token_bytes),
        ages=frame_parts.ages(cache),
    )
