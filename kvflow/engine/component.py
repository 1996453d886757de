"""The eviction walk: SGLang's FULL component, taking its victims from the kept order.

SGLang builds a heap over all leaves for each eviction (45 ms at 50,000 leaves). Here the order is
there already, and the walk takes the first, one after another, in O(log leaves) each.
"""

from typing import Any

from sglang.srt.mem_cache.unified_cache.components.full import FullComponent


class KvflowFullComponent(FullComponent):
    """FULL attention KV whose victims come from `KvflowTreeCore`'s orders."""

    def __init__(self, cache: Any, params: Any) -> None:
        super().__init__(cache, params)
        self._wanted_tokens = 0
        self._taken: list[Any] = []

    def _evict_device_start(self, request_cnt: int) -> None:
        self._wanted_tokens = request_cnt

    def _evict_device_next_node(
        self, tracker: Any, device_frees: Any, host_frees: Any, cache_actions: Any
    ) -> int | None:
        if tracker[self.component_type] >= self._wanted_tokens:
            return None
        victim = self.tree_core.device_order.pop()
        if victim is None:
            return None
        # One that cannot be evicted must not come up again in the same walk.
        self._taken.append(victim)
        return victim.id

    def _evict_device_end(self) -> None:
        core = self.tree_core
        for node in self._taken:
            if node in core.evictable_device_leaves:
                core.device_order.add(node)
        self._taken.clear()

    def drive_host_eviction(
        self,
        num_tokens: int,
        tracker: Any,
        device_frees: Any,
        host_frees: Any,
        cache_actions: Any,
    ) -> None:
        """Evict host leaves until `num_tokens` tokens are free or none is left.

        May run in the middle of a device walk, whose victim wants to be written back.
        """
        core = self.tree_core
        while tracker[self.component_type] < num_tokens:
            victim = core.host_order.pop()
            if victim is None:
                break
            core._evict_host_leaf(
                victim, tracker, device_frees, host_frees, cache_actions=cache_actions
            )
