"""The radix cache: SGLang's own, told of calls as they come and go.

It carries SGLang's events to `calls` and what follows from them to the tree core. Where a call's
fixed prefix ends is where its insert is cut in two, so that the prefix is a node of its own that
can be kept, backed up and marked without the call's tail.
"""

from dataclasses import replace
from typing import Any

from sglang.srt.managers.schedule_batch import FINISH_ABORT
from sglang.srt.mem_cache.base_prefix_cache import CacheRequestOutcome
from sglang.srt.session.streaming_session import is_virtual_node

from kvflow.engine.agent_prompts import Namespace
from kvflow.engine.calls import Call, Calls
from kvflow.engine.deferral import Deferrals
from kvflow.engine.guard import guarded
from kvflow.engine.marks import Marks, Tails
from kvflow.engine.observed_cache import ObservedRadixCache
from kvflow.engine.prefetch import Prefetcher
from kvflow.engine.settings import Settings
from kvflow.engine.tree import KvflowTreeCore, Prefix
from kvflow.policy.rank import IDLE
from kvflow.recipe.model import Mode
from kvflow.runs import StepChange


class KvflowRadixCache(ObservedRadixCache):
    """SGLang's unified radix cache that knows who will speak next.

    Attributes:
        calls: tagged calls in flight and their runs.
        marks: which fixed prefixes stand in the tree; `tails`: which conversations.
        degraded: whether something of kvflow's failed, so that it goes on as in mode off.
    """

    settings = Settings()
    """Of the cache that is built next: SGLang builds it from its own parameters alone."""

    tree_core: KvflowTreeCore
    scheduler: Any = None
    """SGLang's Scheduler, once it has built the cache and its dispatcher."""

    def __init__(self, params: Any) -> None:
        # SGLang's own __init__ ends in reset(), which needs these.
        policy = self.settings.policy
        self.untagged_steps = policy.untagged_steps
        self.prefetcher = Prefetcher(self, policy.prefetch_depth, policy.prefetch_tokens)
        self.deferrals = Deferrals(policy.max_defer)
        self._batch_must_wait = self._reads_on = False
        self.degraded = False
        self.calls = Calls(params.page_size)
        self.marks: Marks[Prefix] = Marks()
        self.tails = Tails()
        super().__init__(params)
        pool = self.token_to_kv_pool_allocator.size
        self.tree_core.share.floor = int(policy.untagged_share * pool)

    def reset(self) -> None:
        """Empty the cache; runs and calls in flight stay (paper invariant 37)."""
        super().reset()
        self.marks.clear()
        self.tails.clear()

    @property
    def mode(self) -> Mode:
        """The mode at work."""
        return self.tree_core.mode

    def switch(self, mode: Mode) -> None:
        """Put another mode to work, on the running server. Once degraded, it stays off."""
        self.tree_core.mode = "off" if self.degraded else mode

    def give_up(self) -> None:
        """Go on without what tracks calls: the cache is whole, and evicts as in mode off."""
        self.degraded = True
        self.switch("off")

    @guarded
    def tick(self) -> None:
        """A second has passed, in every rank alike: silent runs may expire."""
        self.tree_core.watch.tick()
        self.tree_core.share.tick()
        self.calls.prompts.tick()
        self._apply(self.calls.table.tick())

    @guarded
    def end_run(self, client: str, run: str, expect_next: bool = True) -> None:
        """The client says that a run is over, and whether another may follow."""
        self._apply(self.calls.table.end(client, run, expect_next))
        self._run_ended(client, run)  # without a graph the table does not know of it

    @guarded
    def forget_workflow(self, client: str, workflow: str) -> None:
        """A client takes back a workflow: its runs and its agents' prompts are forgotten."""
        self.calls.prompts.forget(client, workflow)
        self._apply(self.calls.table.forget(client, workflow))

    # Copies from the host

    def check_hicache_events(self) -> None:
        """Once a scheduler pass: SGLang notes which copies are complete, then prefetches start."""
        self._batch_must_wait = False
        super().check_hicache_events()
        if self.mode in ("prefetch", "full") and self._may_prefetch():
            scheduler = self.scheduler
            self.prefetcher.step(scheduler.running_batch.reqs, scheduler.waiting_queue)

    def _may_prefetch(self) -> bool:
        """Whether the setting allows it, and nobody waits for the cache to be quiet."""
        return (
            self.scheduler is not None
            and self.cache_controller is not None
            and self.prefetch_is_supported
            and self.scheduler.flush_wrapper._pending is None
        )

    @property
    def prefetch_is_supported(self) -> bool:
        """Full attention, one pipeline stage, and the host tier all to ourselves."""
        return (
            self.pp_size == 1
            and self.linker is None
            and self.buffer_pipeline is None
            and not self.enable_storage
            and self.tree_core.has_only_full_attention()
            and not self.tree_core.is_eagle
        )

    def start_copies(self) -> None:
        """Start what `load_back` has queued, without making a batch wait for it."""
        super().ready_to_load_host_cache()

    def lock(self, node_id: Any, skip_lock_components: Any = ()) -> Any:
        """As SGLang's, at each admission; notes a batch that will read what is on its way.

        A node looks resident from the moment its load is queued (SGLang's components/full.py).
        """
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

    # A call's life

    @guarded
    def call_arrived(self, req: Any) -> None:
        """A request has been queued."""
        params = req.sampling_params.custom_params
        namespace = Namespace(req.extra_key, req.cache_salt)
        self._apply(self.calls.arrive(req.rid, params, req.origin_input_ids, namespace))
        self.prefetcher.call_arrived(req)
        if self.calls.get(req.rid) is None:
            self.tree_core.share.call_arrived()

    def match_prefix(self, params: Any) -> Any:
        """As SGLang's; what it matches is not spent."""
        result = super().match_prefix(params)
        if params.req is not None:
            self._note_match(result.best_match_node, params.req.rid)
        return result

    def checkpoint_into_tree(self, req: Any, *, up_to: int, **kwargs: Any) -> None:
        """As SGLang's, with the insert cut where the call's fixed prefix ends."""
        self.tree_core.inserting = self.calls.get(req.rid)
        self._reads_on = not req.finished()
        try:
            super().checkpoint_into_tree(req, up_to=up_to, **kwargs)
        finally:
            self.tree_core.inserting = None
            self._reads_on = False

    def insert(self, params: Any) -> Any:
        """As SGLang's, which lets a call that goes on read the tree's KV instead of its own.

        It may have computed what has been on its way since: its next forward, a decode as a rule,
        waits for no load, so everything after this insert does.
        """
        result = self._insert(params)
        if self._reads_on:
            loads = self.tree_core.loads_on(result.last_device_node)
            for ack in self.cache_controller.ack_load_queue if loads else ():
                if loads.intersection(ack.node_ids):
                    ack.finish_event.wait()  # in the stream's order: the scheduler goes on
        return result

    def _insert(self, params: Any) -> Any:
        """As SGLang's; for a tagged call the fixed prefix goes in first, as a node of its own."""
        call = self.tree_core.inserting
        boundary = self._boundary(call, params)
        if call is None or boundary is None:
            return super().insert(params)
        prefix = replace(params, key=params.key[:boundary], value=params.value[:boundary])
        self._mark(call, params.key, super().insert(prefix).last_device_node)
        # The prefix is the tree's now: the second insert neither frees nor counts it again.
        return super().insert(
            replace(
                params,
                prev_prefix_len=max(params.prev_prefix_len, boundary),
                inserted_len=max(params.inserted_len, boundary),
            )
        )

    def on_release(self, req: Any, *, checkpointed: bool) -> None:
        """A request gave back its slots: because it is over, or until it is tried again."""
        super().on_release(req, checkpointed=checkpointed)
        if req.finished():
            self._note_end(req)

    def finish(self, handle: Any, outcome: Any) -> None:
        """A request went away before it ran."""
        super().finish(handle, outcome)
        if outcome is not CacheRequestOutcome.SUCCESS:
            self._note_abort(handle.rid)

    @guarded
    def _note_match(self, node_id: int, call_id: str) -> None:
        call = self.calls.get(call_id)
        self.tree_core.matched(node_id, call_id if call is None else call.author)

    @guarded
    def _note_end(self, req: Any) -> None:
        call = self.calls.get(req.rid)
        aborted = isinstance(req.finished_reason, FINISH_ABORT)
        end = self.calls.abort if aborted else self.calls.finish
        changes = end(req.rid)
        self.deferrals.forget(req.rid)
        if call is not None:
            self._settle(call, req.last_node, aborted)
        self._apply(changes)

    def _settle(self, call: Call, node_id: int, aborted: bool) -> None:
        """What a call that is over has left in the tree."""
        core, tail = self.tree_core, call.tail
        if not call.converses:
            core.settle(node_id, call.id, None if aborted else call.boundary)
            core.conversation_ended(tail)  # it may have been thought to hold one
        elif not aborted:
            self.tails.add(tail)
            core.go_on(tail, node_id, self._steps(tail.client, tail.agent))
            self.tails.keep_only(lambda known: core.ranks.end(known) is not None)

    @guarded
    def _note_abort(self, call_id: str) -> None:
        self.deferrals.forget(call_id)
        self._apply(self.calls.abort(call_id))

    def _boundary(self, call: Call | None, params: Any) -> int | None:
        """Where to cut an insert, in tokens; None where it stays whole."""
        if call is None or call.boundary is None or self.tree_core.mode == "off":
            return None
        # What the call has inserted before was cut then.
        inside = params.inserted_len < call.boundary <= len(params.key)
        return call.boundary if inside and self.tree_core.has_only_full_attention() else None

    @guarded
    def _mark(self, call: Call, key: Any, node_id: int) -> None:
        tag = call.tag
        mark = (tag.client, tag.agent, key.extra_key, key.cache_salt)
        self.marks.add((tag.client, tag.agent), mark)
        self.tree_core.place(mark, node_id, self._steps(tag.client, tag.agent))
        self.marks.keep_only(lambda known: self.tree_core.ranks.end(known) is not None)

    def _steps(self, client: str, agent: str) -> int:
        steps = self.calls.table.least(client, agent)
        return IDLE if steps is None else steps

    def _apply(self, changes: list[StepChange]) -> None:
        for client, agent, steps in changes:
            self.prefetcher.note_steps((client, agent), steps)
            count_as = IDLE if steps is None else steps
            for prefix in self.marks.of((client, agent)):
                self.tree_core.set_steps(prefix, count_as)
            for tail in self.tails.of((client, agent)):
                self.tree_core.set_steps(tail, count_as)
        for run in self.calls.drain_ended():
            self._run_ended(run.client, run.run)

    def _run_ended(self, client: str, run: str) -> None:
        self.calls.prompts.run_ended(client, run)
        for tail in self.tails.pop_run(client, run):
            self.tree_core.conversation_ended(tail)
