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
        on_their_way = self._on_their_way() or []
        super().loading_check(finish_count)
        self._note_loads(on_their_way)

    def _log_write_ack_metrics(self, ack: Any) -> None:
        super()._log_write_ack_metrics(ack)
        self._note_write(ack)

    def on_release(self, req: Any, *, checkpointed: bool) -> None:
        """As SGLang's; until now the request has used its KV."""
        super().on_release(req, checkpointed=checkpointed)
        self._note_use(req)

    @guarded
    def _on_their_way(self) -> list[tuple[Any, bool]]:
        """The loads in flight, and whether each is ahead of need."""
        is_ahead = self.tree_core.outcomes.is_ahead
        return [(ack, any(map(is_ahead, ack.node_ids))) for ack in self._loads()]

    @guarded
    def _note_loads(self, before: list[tuple[Any, bool]]) -> None:
        """Of the loads that were in flight before, the first ones are complete."""
        for ack, was_ahead in before[: len(before) - len(self._loads())]:
            self.traffic.loaded(ack, ahead=was_ahead)

    def _loads(self) -> list[Any]:
        return [] if self.cache_controller is None else list(self.cache_controller.ack_load_queue)

    @guarded
    def _note_write(self, ack: Any) -> None:
        self.traffic.written(ack)

    @guarded
    def _note_use(self, req: Any) -> None:
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
