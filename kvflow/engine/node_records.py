"""What a frame says of nodes, read without touching them."""

from collections.abc import Iterable
from typing import Any

from sglang.srt.mem_cache.unified_cache.components import ComponentType

from kvflow.engine.cache import KvflowRadixCache
from kvflow.engine.watch import Owners
from kvflow.frames import Node, State

_FULL = ComponentType.FULL


def owners_by_node(cache: KvflowRadixCache) -> Owners:
    """The agents whose fixed prefix ends at a node, as "client/agent"."""
    ranks, found = cache.tree_core.ranks, dict[int, dict[str, None]]()
    for (client, agent), mark in cache.marks.items():
        end = ranks.end(mark)
        if end is not None:
            found.setdefault(end, {})[f"{client}/{agent}"] = None
    return {node: tuple(owners) for node, owners in found.items()}


class Records:
    """Makes the records of one frame.

    Args:
        cache: whose nodes they are.
        owners: from `owners_by_node`.
    """

    def __init__(self, cache: KvflowRadixCache, owners: Owners) -> None:
        self._core = cache.tree_core
        self._owners = owners
        self._depths = {self._core.root_node.id: 0}  # tokens up to the end of a node

    def of(self, nodes: Iterable[Any]) -> tuple[Node, ...]:
        """The records of nodes that are in the tree."""
        return tuple(map(self._record, nodes))

    def _record(self, node: Any) -> Node:
        ranks, node_id, parent = self._core.ranks, node.id, node.parent
        full = node.component_data[_FULL]
        depth = self._depths.get(parent.id)
        return Node(
            id=node_id,
            parent=parent.id,
            tokens=len(node.key),
            depth=self._depth(parent) if depth is None else depth,
            state=self._state(node, full),
            steps=ranks.steps(node_id),
            why=self._core.why(node),
            agents=self._owners.get(node_id, ()),
            locks=full.lock_ref,
            hits=node.hit_count,
            last_access=float(node.last_access_time),
            children=len(node.children),
        )

    def _state(self, node: Any, full: Any) -> State:
        if self._core.is_loading(node.id):
            return State.LOADING
        if node.write_through_pending_id is not None:
            return State.OFFLOADING
        if full.value is None:
            return State.HOST
        return State.DEVICE if full.host_value is None else State.MIRRORED

    def _depth(self, node: Any) -> int:
        """Tokens up to the end of a node. The way up is walked once for all below it."""
        path = []
        while node.id not in self._depths:
            path.append(node)
            node = node.parent
        depth = self._depths[node.id]
        for below in reversed(path):
            depth += len(below.key)
            self._depths[below.id] = depth
        return depth
