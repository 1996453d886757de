"""SGLang's unified radix cache, with books of what it copies and of the calls it serves.

For people to look at: nothing here decides anything, and what fails is given up (`guard`).
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache

from kvflow.engine.guard import guarded
from kvflow.engine.hits import Label
from kvflow.engine.traffic import Traffic

if TYPE_CHECKING:
    from kvflow.engine.calls import Calls
    from kvflow.engine.marks import Prefixes
    from kvflow.engine.tree import KvflowTreeCore


class ObservedRadixCache(UnifiedRadixCache):
    """A radix cache that keeps books.

    Attributes:
        traffic: copies between the tiers.
    """

    tree_core: "KvflowTreeCore"
    calls: "Calls"
    marks: "Prefixes"
    degraded: bool

    def __init__(self, params: Any) -> None:
        self.traffic = Traffic()
        super().__init__(params)

    @cached_property
    def bytes_per_token(self) -> int:
        """Bytes of KV that one token takes on the device."""
        kv = self.token_to_kv_pool_allocator.get_kvcache()
        nbytes = kv.get_kv_size_bytes()
        total = sum(nbytes) if isinstance(nbytes, tuple) else nbytes
        return int(total) // max(1, self.token_to_kv_pool_allocator.size + self.page_size)

    def loading_check(self, finish_count: int | None = None) -> None:
        """As SGLang's; counts the loads that are complete."""
        controller = self.cache_controller
        before = [] if controller is None else list(controller.ack_load_queue)
        ahead = [any(map(self.tree_core.outcomes.is_ahead, ack.node_ids)) for ack in before]
        super().loading_check(finish_count)
        complete = len(before) - (0 if controller is None else len(controller.ack_load_queue))
        for ack, was_ahead in zip(before[:complete], ahead, strict=False):
            self.traffic.loaded(ack, ahead=was_ahead)

    def _log_write_ack_metrics(self, ack: Any) -> None:
        super()._log_write_ack_metrics(ack)
        self.traffic.written(ack)

    def on_release(self, req: Any, *, checkpointed: bool) -> None:
        """As SGLang's; until now the request has used its KV."""
        super().on_release(req, checkpointed=checkpointed)
        if req.last_node is not None:
            self.tree_core.used(req.last_node)

    @guarded
    def call_admitted(self, req: Any, on_device: int) -> None:
        """A request has been admitted to a prefill batch.

        Args:
            req: SGLang's Req. One that was admitted before (it was retracted) is passed over.
            on_device: tokens of its prompt that were on the device before.
        """
        if req.retracted_stain:
            return
        prompt = req.origin_input_ids
        loaded = req.materialized_host_hit_len()
        cached = on_device + loaded
        ledger = self.tree_core.ledger
        owner, label = self._speaker(req.rid)
        ledger.hits.admitted(owner, label, on_device, loaded, max(0, len(prompt) - cached))
        for node in self.tree_core.path(req.last_node):
            ledger.ages.hit(node.id, len(node.key))
        ledger.asked(prompt, (req.extra_key, req.cache_salt), on_device, cached)

    def _speaker(self, call_id: str) -> tuple[tuple[str, str] | None, Label | None]:
        call = self.calls.get(call_id)
        if call is None:
            return None, None
        tag = call.tag
        graph = self.calls.table.graph(tag.client, tag.workflow)
        registered = graph is not None and tag.agent in graph.agents
        label = Label(tag.workflow, tag.agent) if registered else None
        return (tag.client, tag.agent), label
