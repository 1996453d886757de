"""SGLang's tree core, with an ear on it for people who look: nothing here decides anything.

What a frame shows of a node is changed in few places of SGLang's. Each is overridden here to do
what it does and then to say which nodes are others than before.
"""

from collections.abc import Iterable
from typing import Any

from sglang.srt.mem_cache.unified_cache.unified_tree_core import UnifiedTreeCore

from kvflow.engine.ledger import Ledger
from kvflow.engine.outcomes import Outcomes
from kvflow.engine.watch import Watch


class ObservedTreeCore(UnifiedTreeCore):
    """A tree core that keeps books.

    Args:
        params: SGLang's CacheInitParams; `components`: its components by type.

    Attributes:
        ledger: what was evicted, what was found, and when nodes were used.
        outcomes: what became of what was prefetched.
        watch: which nodes changed since the last frame.
    """

    def __init__(self, params: Any, components: Any) -> None:
        # SGLang's own __init__ ends in reset(), which needs these.
        self.ledger = Ledger()
        self.outcomes = Outcomes()
        self.watch = Watch()
        super().__init__(params, components)

    def reset(self) -> None:
        """As SGLang's; what was counted stays."""
        super().reset()
        self.ledger.forget_nodes()
        self.outcomes.forget_nodes()
        self.watch.end()

    def changed(self, node_ids: Iterable[int]) -> None:
        """Something that frames show of these nodes is not what it was."""
        if self.watch.on:
            for node_id in node_ids:
                self.watch.changed(node_id)

    def used(self, node_id: int) -> None:
        """A call is done with the path down to this node."""
        node = self._node_arena.get(node_id)
        while node is not None and node is not self.root_node:
            self.ledger.ages.used(node.id)
            node = node.parent

    def _path_changed(self, node: Any) -> None:
        if self.watch.on:
            while node is not None and node is not self.root_node:
                self.watch.changed(node.id)
                node = node.parent

    def _one_changed(self, node: Any) -> None:
        if self.watch.on and node is not self.root_node:
            self.watch.changed(node.id)

    # Structure

    def _add_new_node(self, parent: Any, *args: Any, **kwargs: Any) -> Any:
        node = super()._add_new_node(parent, *args, **kwargs)
        self.ledger.ages.used(node.id)
        return node

    def _split_node(self, key: Any, child: Any, split_len: int) -> Any:
        new_node, action = super()._split_node(key, child, split_len)
        self.ledger.split(new_node.id, child.id)
        self.outcomes.split(new_node.id, child.id)
        self._one_changed(new_node)
        self._one_changed(child)
        return new_node, action

    def _remove_leaf_from_parent(self, node: Any) -> None:
        super()._remove_leaf_from_parent(node)
        self.ledger.removed(node.id)
        if self.watch.on:
            self.watch.removed(node.id)
            self._one_changed(node.parent)

    def _update_evictable_leaf_sets(self, node: Any) -> None:
        # Of a node that came, went to another tier, or got or lost a child.
        super()._update_evictable_leaf_sets(node)
        if self.watch.on and node.id in self._node_arena:
            self._one_changed(node)

    # Access, hits and locks

    def _match_post_processor(
        self, params: Any, value: Any, best_match_node: Any, *args: Any, **kwargs: Any
    ) -> Any:
        result = super()._match_post_processor(params, value, best_match_node, *args, **kwargs)
        self._path_changed(best_match_node)
        return result

    def _touch_node(self, node: Any) -> None:
        super()._touch_node(node)
        self._one_changed(node)

    def _inc_hit_count_and_check(self, node: Any) -> bool:
        wanted = super()._inc_hit_count_and_check(node)
        self._one_changed(node)
        return bool(wanted)

    def inc_lock_ref(self, node_id: int, *args: Any, **kwargs: Any) -> Any:
        """As SGLang's."""
        result = super().inc_lock_ref(node_id, *args, **kwargs)
        self._path_changed(self._node_arena[node_id])
        return result

    def dec_lock_ref(self, node_id: int, *args: Any, **kwargs: Any) -> Any:
        """As SGLang's."""
        result = super().dec_lock_ref(node_id, *args, **kwargs)
        self._path_changed(self._node_arena[node_id])
        return result

    def inc_full_pin(self, node_id: int) -> None:
        """As SGLang's."""
        super().inc_full_pin(node_id)
        self._path_changed(self._node_arena[node_id])

    def dec_full_pin(self, node_id: int) -> None:
        """As SGLang's."""
        super().dec_full_pin(node_id)
        self._path_changed(self._node_arena[node_id])

    # Where the KV is

    def commit_load_back(
        self, node_id: int, device_indices: Any, kv_xfer: Any, comp_xfers: Any
    ) -> Any:
        """As SGLang's."""
        result = super().commit_load_back(node_id, device_indices, kv_xfer, comp_xfers)
        self._path_changed(self._node_arena[node_id])
        return result

    def finish_load_back(self, anchor_node_id: int) -> Any:
        """As SGLang's."""
        result = super().finish_load_back(anchor_node_id)
        self.outcomes.arrived(anchor_node_id)
        self._path_changed(self._node_arena[anchor_node_id])
        return result

    def commit_backup(self, node_id: int, host_indices: Any, comp_xfers: Any) -> Any:
        """As SGLang's."""
        result = super().commit_backup(node_id, host_indices, comp_xfers)
        self._one_changed(self._node_arena[node_id])
        return result

    def mark_write_through_pending(self, node_ids: Any, ack_id: int) -> Any:
        """As SGLang's."""
        result = super().mark_write_through_pending(node_ids, ack_id)
        self.changed(node_ids)
        return result

    def finish_write_through(self, node_ids: Any, ack_id: int) -> Any:
        """As SGLang's."""
        result = super().finish_write_through(node_ids, ack_id)
        self.changed(node_ids)
        return result

    def _evict_component_and_detach_lru(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        result = super()._evict_component_and_detach_lru(node, *args, **kwargs)
        self._one_changed(node)
        return result
