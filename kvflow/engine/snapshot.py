"""Taking a frame of a scheduler, on its own thread, without touching what it looks at.

No match, no access time, no hit count: nodes are read as they stand. The walk is breadth first and
stops at the number of nodes asked for, so a large tree costs no more than a small one.
"""

from collections import deque
from typing import Any

from sglang.srt.mem_cache.unified_cache.components import ComponentType

from kvflow.engine.cache import KvflowRadixCache
from kvflow.engine.ledger import Eviction
from kvflow.frames import (
    AgentState,
    Counters,
    EvictionRecord,
    Frame,
    Node,
    Pool,
    State,
)

MOST_NODES = 2000
_FULL = ComponentType.FULL


def take(scheduler: Any, most_nodes: int) -> Frame:
    """A frame of this rank.

    Args:
        scheduler: SGLang's Scheduler.
        most_nodes: how many nodes of the tree to show, the ones nearest the root first.

    Raises:
        ValueError: fewer than 0 nodes, or more than MOST_NODES.
    """
    if not 0 <= most_nodes <= MOST_NODES:
        raise ValueError(f"nodes={most_nodes} is not within 0..{MOST_NODES}")
    cache: KvflowRadixCache = scheduler.tree_cache
    nodes, left_out = _nodes(cache, most_nodes)
    return Frame(
        mode=cache.mode,
        page_size=cache.page_size,
        bytes_per_token=_bytes_per_token(cache),
        untagged_steps=cache.untagged_steps,
        device=_device_pool(cache),
        host=_host_pool(cache),
        running=len(scheduler.running_batch.reqs),
        waiting=len(scheduler.waiting_queue),
        runs=sum(1 for _ in cache.calls.table.runs()),
        nodes=nodes,
        nodes_left_out=left_out,
        agents=_agents(cache),
        evictions=tuple(map(_eviction, cache.tree_core.ledger.latest)),
        counters=_counters(cache),
        degraded=cache.degraded,
    )


def _nodes(cache: KvflowRadixCache, most: int) -> tuple[tuple[Node, ...], bool]:
    core = cache.tree_core
    owners: dict[int, list[str]] = {}
    for (client, agent), mark in cache.marks.items():
        end = core.ranks.end(mark)
        if end is not None:
            owners.setdefault(end, []).append(f"{client}/{agent}")
    found: list[Node] = []
    todo = deque((child, 0) for child in core.root_node.children.values())
    while todo and len(found) < most:
        node, depth = todo.popleft()
        found.append(_node(cache, node, depth, tuple(owners.get(node.id, ()))))
        end = depth + len(node.key)
        todo.extend((child, end) for child in node.children.values())
    return tuple(found), bool(todo)


def _node(cache: KvflowRadixCache, node: Any, depth: int, agents: tuple[str, ...]) -> Node:
    core = cache.tree_core
    full = node.component_data[_FULL]
    rank = core.ranks.rank(node.id, node.last_access_time)
    return Node(
        id=node.id,
        parent=node.parent.id,
        tokens=len(node.key),
        depth=depth,
        state=_state(core, node, full),
        steps=-rank[1],
        why=core.why(node),
        agents=agents,
        locks=full.lock_ref,
        hits=node.hit_count,
        last_access=float(node.last_access_time),
        children=len(node.children),
    )


def _state(core: Any, node: Any, full: Any) -> State:
    if core.is_loading(node.id):
        return State.LOADING
    if node.write_through_pending_id is not None:
        return State.OFFLOADING
    if full.value is None:
        return State.HOST
    return State.DEVICE if full.host_value is None else State.MIRRORED


def _agents(cache: KvflowRadixCache) -> tuple[AgentState, ...]:
    table = cache.calls.table
    in_flight: dict[tuple[str, str], int] = {}
    for call in cache.calls.in_flight():
        owner = (call.tag.client, call.tag.agent)
        in_flight[owner] = in_flight.get(owner, 0) + 1
    live = {(client, agent): steps for client, agent, steps in table.steps()}
    owners = dict.fromkeys([*live, *(owner for owner, _ in cache.marks.items())])
    found = []
    for client, agent in owners:
        device, host = _longest_prefix(cache, (client, agent))
        found.append(
            AgentState(
                client=client,
                agent=agent,
                steps=live.get((client, agent)),
                runs=table.waiting(client, agent),
                in_flight=in_flight.get((client, agent), 0),
                prefix_tokens=device + host,
                device_tokens=device,
                host_tokens=host,
            )
        )
    return tuple(found)


def _longest_prefix(cache: KvflowRadixCache, owner: tuple[str, str]) -> tuple[int, int]:
    """Tokens on the device and on the host alone, of the owner's longest prefix in the tree."""
    longest = (0, 0)
    for mark in cache.marks.of(owner):
        end = cache.tree_core.ranks.end(mark)
        if end is None:
            continue
        path = cache.tree_core.path(end)
        host = sum(len(node.key) for node in path if node.evicted)
        prefix = (sum(len(node.key) for node in path) - host, host)
        longest = max(longest, prefix, key=sum)
    return longest


def _device_pool(cache: KvflowRadixCache) -> Pool:
    return Pool(
        capacity=cache.token_to_kv_pool_allocator.size,
        free=cache.token_to_kv_pool_allocator.available_size(),
        evictable=cache.tree_core.component_evictable_size_[_FULL],
        locked=cache.tree_core.component_protected_size_[_FULL],
    )


def _host_pool(cache: KvflowRadixCache) -> Pool | None:
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


def _bytes_per_token(cache: KvflowRadixCache) -> int:
    kv = cache.token_to_kv_pool_allocator.get_kvcache()
    nbytes = kv.get_kv_size_bytes()
    total = sum(nbytes) if isinstance(nbytes, tuple) else nbytes
    return int(total) // max(1, cache.token_to_kv_pool_allocator.size + cache.page_size)


def _eviction(record: Eviction) -> EvictionRecord:
    return EvictionRecord(**record._asdict())


def _counters(cache: KvflowRadixCache) -> Counters:
    counts, table, core = cache.calls.counts, cache.calls.table.counters, cache.tree_core
    ledger, outcomes = core.ledger, core.outcomes
    return Counters(
        tagged_calls=counts.tagged,
        untagged_calls=counts.untagged,
        unexpected_calls=table.unexpected,
        unknown_agents=table.unknown,
        other_prompt=counts.other_prompt,
        bad_hints=dict(counts.bad_hints),
        evicted_device_tokens=ledger.evicted_tokens["device"],
        evicted_host_tokens=ledger.evicted_tokens["host"],
        not_backed_up_tokens=ledger.not_backed_up_tokens,
        expired_runs=table.expired,
        prefetches=outcomes.operations,
        prefetched_tokens=outcomes.issued,
        prefetched_used_tokens=outcomes.used,
        prefetched_late_tokens=outcomes.late,
        prefetched_wasted_tokens=outcomes.wasted,
        deferred_calls=cache.deferrals.calls,
        deferred_passes=cache.deferrals.passes,
    )
