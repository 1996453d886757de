"""What a frame says of nodes, read without touching them."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from sglang.srt.mem_cache.unified_cache.components import ComponentType

from kvflow.engine.cache import KvflowRadixCache
from kvflow.engine.marks import Prefix
from kvflow.engine.snapshot_limits import MOST_NAMES
from kvflow.frames import Node, State

_FULL = ComponentType.FULL


class Records:
    """Makes the records of one frame.

    Args:
        cache: whose nodes they are.
    """

    def __init__(self, cache: KvflowRadixCache) -> None:
        self._core = cache.tree_core
        self._loading = {node for nodes in self._core._loading.values() for node in nodes}
        self._depths = {self._core.root_node.id: 0}  # tokens up to the end of a node

    def of(self, nodes: Iterable[Any]) -> tuple[Node, ...]:
        """The records of nodes that are in the tree."""
        return tuple(map(self._record, nodes))

    def _record(self, node: Any) -> Node:
        # On the scheduler's thread, for hundreds of nodes: every look-up counts.
        node_id, parent, key = node.id, node.parent.id, node.key
        full = node.component_data[_FULL]
        depth = self._depths.get(parent)
        plain = key.limit is None and not key.is_bigram
        if node_id in self._loading:
            state = State.LOADING
        elif node.write_through_pending_id is not None:
            state = State.OFFLOADING
        elif full.value is None:
            state = State.HOST
        else:
            state = State.DEVICE if full.host_value is None else State.MIRRORED
        return Node(
            id=node_id,
            parent=parent,
            tokens=len(key.token_ids) if plain else len(key),
            depth=self._depth(node.parent) if depth is None else depth,
            state=state,
            steps=self._core.ranks.steps(node_id),
            why=self._core.why(node),
            agents=self._names(node_id),
            locks=full.lock_ref,
            hits=node.hit_count,
            last_access=float(node.last_access_time),
            children=len(node.children),
        )

    def _names(self, node_id: int) -> tuple[str, ...]:
        ending = self._core.ranks.ending(node_id)
        prefixes = (mark for mark in ending if isinstance(mark, Prefix))
        return tuple(f"{one.client}/{one.agent}" for one in islice(prefixes, MOST_NAMES))

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
