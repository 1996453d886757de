"""Status-aware scheduling: a call whose prefix is still arriving is passed over for a moment.

Source: paper section 3.2, invariants 30 to 32. The order among calls that are ready is kept, the
number of passes is bounded, and nothing is passed over when nothing else could run: then SGLang's
own wait, layer by layer, is better than idling.
"""

from functools import cache, cached_property
from typing import Any

from sglang.srt.managers.schedule_policy import AddReqResult

from kvflow.engine.cache import KvflowRadixCache
from kvflow.engine.guard import guarded


@cache
def status_aware(adder_class: Any) -> Any:
    """A subclass of SGLang's PrefillAdder (or of another plugin's) that defers."""

    class StatusAwareAdder(adder_class):
        def add_one_req(self, req: Any, *args: Any, **kwargs: Any) -> Any:
            """As SGLang's, but first: is what it would read still on its way?"""
            if _defers(self.tree_cache, self, req):
                # Not admitted and not refused: it stays where it is in the queue.
                return AddReqResult.CONTINUE
            on_device = req.prefix_len
            result = super().add_one_req(req, *args, **kwargs)
            if self.can_run_list and self.can_run_list[-1] is req:
                _note(self.tree_cache, req, on_device)
            return result

        @cached_property
        def somebody_is_ready(self) -> bool:
            """Whether any call waits in this pass for nothing that is arriving. O(queue), once."""
            core, queue = self.tree_cache.tree_core, self.tree_cache.scheduler.waiting_queue
            return any(
                req.last_node is None or not core.is_prefetching(req.last_node) for req in queue
            )

    return StatusAwareAdder


def _note(tree_cache: Any, req: Any, on_device: int) -> None:
    if isinstance(tree_cache, KvflowRadixCache):
        tree_cache.call_admitted(req, on_device)


def _defers(tree_cache: Any, adder: Any, req: Any) -> bool:
    if not isinstance(tree_cache, KvflowRadixCache) or tree_cache.mode != "full":
        return False
    return bool(_waits_for_its_prefix(tree_cache, adder, req))


@guarded
def _waits_for_its_prefix(tree_cache: KvflowRadixCache, adder: Any, req: Any) -> bool:
    # Plain requests are never held up, and a load that a call has asked for itself is SGLang's.
    if tree_cache.calls.get(req.rid) is None or req.last_node is None:
        return False
    if not tree_cache.tree_core.is_prefetching(req.last_node):
        return False
    forwards = tree_cache.scheduler.forward_ct
    others = _others_can_run(adder, tree_cache, req, forwards)
    return others and tree_cache.deferrals.allow(req.rid, forwards)


def _others_can_run(adder: Any, tree_cache: KvflowRadixCache, req: Any, forwards: int) -> bool:
    if adder.can_run_list or (adder.running_batch and adder.running_batch.reqs):
        return True
    if tree_cache.deferrals.was_in_vain(req.rid, forwards):
        return False  # what waits besides found no room
    return bool(adder.somebody_is_ready)  # which this call is not
