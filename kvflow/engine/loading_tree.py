"""SGLang's tree core, with a note of what is on its way from the host to the device.

SGLang's own nodes look resident from the moment their load is queued (its components/full.py), so
whoever must not read what has not arrived, or wants to pass it over, asks here.
"""

from collections.abc import Iterable
from typing import Any

from sglang.srt.mem_cache.unified_cache.components import ComponentType

from kvflow.engine.observed_tree import ObservedTreeCore


class LoadingTreeCore(ObservedTreeCore):
    """A tree core that knows what is loading, and what of that is nobody's demand yet."""

    def reset(self) -> None:
        """As SGLang's; nothing is loading."""
        super().reset()
        self._loading: dict[int, dict[int, None]] = {}  # nodes by the node that ends the load
        self._ahead: dict[int, None] = {}  # loads that are prefetches

    def path(self, node_id: int) -> list[Any]:
        """The nodes from this one up to the root, without the root; none for an unknown id."""
        found = []
        node = self._node_arena.get(node_id)
        while node is not None and node is not self.root_node:
            found.append(node)
            node = node.parent
        return found

    def depth(self, node_id: int) -> int:
        """Tokens from the root to the end of this node."""
        return sum(len(node.key) for node in self.path(node_id))

    def host_only_tokens(self, node_id: int) -> int:
        """Tokens on the path to this node that are on the host alone and not on their way."""
        return sum(len(node.key) for node in self.path(node_id) if node.evicted)

    def is_loading(self, node_id: int) -> bool:
        """Whether the node's KV is on its way from the host to the device."""
        return any(node_id in nodes for nodes in self._loading.values())

    def is_arriving(self, node_id: int) -> bool:
        """Whether any part of the path down to the node is on its way to the device."""
        return bool(self._loading) and any(self.is_loading(n.id) for n in self.path(node_id))

    @property
    def is_loading_ahead(self) -> bool:
        """Whether anything is on its way that is nobody's demand yet."""
        return bool(self._ahead)

    def loads_on(self, node_id: int) -> set[int]:
        """The loads that bring a part of the path down to the node, by the node that ends each."""
        if not self._loading:
            return set()
        path = [node.id for node in self.path(node_id)]
        return {load for load, nodes in self._loading.items() if any(one in nodes for one in path)}

    def is_prefetching(self, node_id: int) -> bool:
        """Whether any part of the path down to the node is on its way ahead of need."""
        return any(
            node.id in self._loading[load] for load in self._ahead for node in self.path(node_id)
        )

    def load_is_ahead(self, node_id: int) -> None:
        """The load of the path down to this node, queued a moment ago, is nobody's demand."""
        if node_id in self._loading:
            self._ahead[node_id] = None

    def moving_tokens(self, writing: Iterable[int]) -> int:
        """Tokens whose host copy is being read or written; `writing`: nodes being written."""
        loading = (node for nodes in self._loading.values() for node in nodes)
        moving = dict.fromkeys([*writing, *loading])
        return sum(len(self._node_arena[node].key) for node in moving if node in self._node_arena)

    def first_part(self, node_id: int, most_tokens: int) -> int:
        """The node that ends the first so many host-only tokens of a path; it is cut if need be.

        At least a page, and a whole node where it is being written and cannot be cut.
        """
        absent = [node for node in reversed(self.path(node_id)) if node.evicted]
        left = max(most_tokens, self.page_size)
        for node in absent:
            tokens = len(node.key)
            if tokens > left:
                return self._cut(node, left // self.page_size * self.page_size)
            left -= tokens
        return node_id

    def _cut(self, node: Any, tokens: int) -> int:
        """End a node after so many tokens, or before it where that is none."""
        if not tokens:
            return int(node.parent.id)
        if node.write_through_pending_id is not None or not self.has_only_full_attention():
            return int(node.id)
        above, _ = self._split_node(node.key, node, tokens)
        return int(above.id)

    def has_only_full_attention(self) -> bool:
        """Whether FULL is the only component: prefixes can then be cut at any page."""
        return self.component_types == (ComponentType.FULL,)

    def _split_node(self, key: Any, child: Any, split_len: int) -> Any:
        new_node, action = super()._split_node(key, child, split_len)
        for nodes in self._loading.values():
            if child.id in nodes:
                nodes[new_node.id] = None
        return new_node, action

    def commit_load_back(
        self, node_id: int, device_indices: Any, kv_xfer: Any, comp_xfers: Any
    ) -> Any:
        """As SGLang's; the nodes count as loading until `finish_load_back`."""
        self._loading[node_id] = dict.fromkeys(kv_xfer.nodes_to_load or ())
        return super().commit_load_back(node_id, device_indices, kv_xfer, comp_xfers)

    def finish_load_back(self, anchor_node_id: int) -> Any:
        """As SGLang's: the copy is complete."""
        self._loading.pop(anchor_node_id, None)
        self._ahead.pop(anchor_node_id, None)
        return super().finish_load_back(anchor_node_id)
