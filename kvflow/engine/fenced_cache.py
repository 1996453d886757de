"""The fences: no forward reads KV that is still on its way from the host.

A node looks resident from the moment its load is queued (SGLang's components/full.py), and SGLang
lets a batch wait for its own load alone. Loads that are nobody's need three more fences: for a
prefill batch that finds such a node, for a call that computed the same meanwhile, and for whoever
has to find the cache quiet.
"""

from typing import Any

from sglang.srt.session.streaming_session import is_virtual_node

from kvflow.engine.observed_cache import ObservedRadixCache


class FencedRadixCache(ObservedRadixCache):
    """A radix cache whose loads may start without a batch that waits for them."""

    def __init__(self, params: Any) -> None:
        self._batch_must_wait = self._reads_on = False
        super().__init__(params)

    def start_copies(self) -> None:
        """Start what `load_back` has queued, without making a batch wait for it."""
        super().ready_to_load_host_cache()

    def finish_prefetches(self) -> None:
        """Wait for what is on its way ahead of need; to be called at the same place in all ranks.

        Blocks for as long as one copy takes.
        """
        if self.tree_core.is_loading_ahead:
            # Loads share a stream, so those on demand among them are complete as well.
            self.loading_check(len(self.cache_controller.ack_load_queue))

    def check_hicache_events(self) -> None:
        """As SGLang's, at the beginning of each scheduler pass."""
        self._batch_must_wait = False
        super().check_hicache_events()

    def lock(self, node_id: Any, skip_lock_components: Any = ()) -> Any:
        """As SGLang's, at each admission; notes a batch that will read what is on its way."""
        if not is_virtual_node(node_id) and self.tree_core.is_arriving(node_id):
            self._batch_must_wait = True
        return super().lock(node_id, skip_lock_components)

    def ready_to_load_host_cache(self) -> int:
        """As SGLang's, once a prefill batch: the load that its forward waits for, or -1.

        A batch without a load of its own that reads prefetched KV waits for the latest load, layer
        by layer. All loads share one stream, in order, so every earlier one is complete with it.
        """
        index: int = super().ready_to_load_host_cache()
        if index < 0 and self._batch_must_wait:
            index = self.cache_controller.layer_done_counter.producer_index
        self.traffic.waited_for(index)
        return index

    def checkpoint_into_tree(self, req: Any, *, up_to: int, **kwargs: Any) -> None:
        """As SGLang's; notes a call that goes on after it."""
        self._reads_on = not req.finished()
        try:
            super().checkpoint_into_tree(req, up_to=up_to, **kwargs)
        finally:
            self._reads_on = False

    def insert(self, params: Any) -> Any:
        """As SGLang's, which lets a call that goes on read the tree's KV instead of its own.

        It may have computed what has been on its way since: its next forward, a decode as a rule,
        waits for no load, so everything after this insert does.
        """
        result = super().insert(params)
        if self._reads_on:
            loads = self.tree_core.loads_on(result.last_device_node)
            for ack in self.cache_controller.ack_load_queue if loads else ():
                if loads.intersection(ack.node_ids):
                    ack.finish_event.wait()  # in the stream's order: the scheduler goes on
        return result
