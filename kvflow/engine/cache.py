"""The radix cache: SGLang's own, told of calls as they come and go.

It carries SGLang's events to `calls` and what follows from them to the tree core. Where a call's
fixed prefix ends is where its insert is cut in two, so that the prefix is a node of its own that
can be kept, backed up and marked without the call's tail.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sglang.srt.managers.schedule_batch import FINISH_ABORT
from sglang.srt.mem_cache.base_prefix_cache import CacheRequestOutcome

from kvflow.engine.agent_prompts import Namespace
from kvflow.engine.calls import Call, Calls
from kvflow.engine.deferral import Deferrals
from kvflow.engine.fenced_cache import FencedRadixCache
from kvflow.engine.guard import guarded
from kvflow.engine.marks import Prefix, Prefixes, Speaker, Tails
from kvflow.engine.prefetch import Prefetcher
from kvflow.engine.quiet import Quiet
from kvflow.engine.salts import Salts, Tenant
from kvflow.engine.settings import Settings
from kvflow.engine.tree import KvflowTreeCore
from kvflow.policy.prefetch import Candidate
from kvflow.policy.rank import IDLE
from kvflow.recipe.model import Mode
from kvflow.runs import Key, StepChange

MOST_MARKS = 4096
"""Fixed prefixes whose agents nobody expects are remembered, so many of them."""


class KvflowRadixCache(FencedRadixCache):
    """SGLang's unified radix cache that knows who will speak next.

    Attributes:
        calls: tagged calls in flight and their runs.
        marks: which fixed prefixes stand in the tree; `tails`: which conversations.
        salts: whose KV the runs of each client ask for.
        degraded: whether something of kvflow's failed, so that it goes on as in mode off.
        limits: of SGLang's settings, those that leave nothing but the eviction order to decide.
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
        self.quiet = Quiet()
        self.degraded = False
        self.limits: tuple[str, ...] = ()
        self.calls = Calls(params.page_size)
        self.marks = Prefixes()
        self.salts = Salts()
        self.tails = Tails()
        super().__init__(params)
        pool = self.token_to_kv_pool_allocator.size
        self.tree_core.share.floor = int(policy.untagged_share * pool)

    def reset(self) -> None:
        """Empty the cache; runs and calls in flight stay (paper invariant 37)."""
        super().reset()
        self.quiet.end()
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
        self.quiet.tick()
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
        super().check_hicache_events()
        if self.mode in ("prefetch", "full") and self._may_prefetch():
            running = self.scheduler.running_batch
            # While nobody can be admitted, what waits cannot load anything, whatever it once found.
            waiting = () if running.batch_is_full else self.scheduler.waiting_queue
            # What fails once copies are queued must not be given up: nodes that look resident
            # would never get their KV.
            if planned := self._plan_prefetches(waiting):
                self.prefetcher.start(planned, running.reqs)

    @guarded
    def _plan_prefetches(self, waiting: Iterable[Any]) -> list[Candidate]:
        return self.prefetcher.plan(waiting)

    def _may_prefetch(self) -> bool:
        """Whether the setting allows it, and nobody waits for the cache to be quiet."""
        return (
            self.scheduler is not None
            and self.cache_controller is not None
            and not self.limits
            and not self.quiet.lasts(self.scheduler.flush_wrapper._pending)
        )

    # A call's life

    @guarded
    def call_arrived(self, req: Any) -> None:
        """A request has been queued."""
        params = req.sampling_params.custom_params
        namespace = Namespace(req.extra_key, req.cache_salt)
        # SGLang has put another prompt in place of one that it refuses.
        prompt = None if req.to_finish is not None else req.origin_input_ids
        again = req.retracted_stain
        self._apply(self.calls.arrive(req.rid, params, prompt, namespace, again=again))
        call = self.calls.get(req.rid)
        if call is None:
            self.tree_core.share.call_arrived()
        else:
            tag = call.tag
            self._salts_changed(self.salts.spoke(tag.client, tag.run, req.cache_salt))
        self.prefetcher.call_arrived(req)

    def match_prefix(self, params: Any) -> Any:
        """As SGLang's; what it matches is not spent."""
        result = super().match_prefix(params)
        if params.req is not None:
            self._note_match(result.best_match_node, params.req.rid)
        return result

    def checkpoint_into_tree(self, req: Any, *, up_to: int, **kwargs: Any) -> None:
        """As SGLang's, with the insert cut where the call's fixed prefix ends."""
        self.tree_core.inserting = self.calls.get(req.rid)
        try:
            super().checkpoint_into_tree(req, up_to=up_to, **kwargs)
        finally:
            self.tree_core.inserting = None

    def insert(self, params: Any) -> Any:
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
        # What is retracted for want of memory, and not tried again, only has a reason to end.
        if req.finished() or isinstance(req.to_finish, FINISH_ABORT):
            self._note_end(req, req.last_node)

    def claim_kv_row(self, req: Any) -> bool:
        """As SGLang's: a streaming session may keep a request's slots, for its next turn."""
        claimed: bool = super().claim_kv_row(req)
        if claimed and req.finished():
            self._note_end(req, None)
        return claimed

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
    def _note_end(self, req: Any, node_id: int | None) -> None:
        call = self.calls.get(req.rid)
        aborted = isinstance(req.finished_reason or req.to_finish, FINISH_ABORT)
        end = self.calls.abort if aborted else self.calls.finish
        changes = end(req.rid)
        self.deferrals.forget(req.rid)
        if call is not None and node_id is not None:
            self._settle(call, node_id, aborted)
        self._apply(changes)

    def _settle(self, call: Call, node_id: int, aborted: bool) -> None:
        """What a call that is over has left in the tree."""
        core, tail = self.tree_core, call.tail
        if not call.converses:
            core.settle(node_id, call.id, None if aborted else call.boundary)
            core.conversation_ended(tail)  # it may have been thought to hold one
            return
        if aborted:
            core.let_go(tail, node_id)
        else:
            self.tails.add(tail)
            run = self.calls.table.steps_in(Key(tail.client, tail.workflow, tail.run))
            core.go_on(tail, node_id, run.get(tail.agent, IDLE))
            self.tails.keep_only(lambda known: core.ranks.end(known) is not None)
        if call.run_is_over:
            core.conversation_ended(tail)

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
        mark = Prefix(call.tag.client, call.tag.agent, key.extra_key, key.cache_salt)
        self.marks.add(mark)
        self.tree_core.place(mark, node_id, self._steps_of(mark))
        self.marks.keep_only(lambda known: self.tree_core.ranks.end(known) is not None)
        for crowded_out in self.marks.crowd_out(MOST_MARKS, self._is_expected):
            self.tree_core.lift(crowded_out)

    def _is_expected(self, speaker: Speaker) -> bool:
        in_use = self.salts.in_use(speaker.client, speaker.cache_salt)
        return in_use and self.calls.table.least(speaker.client, speaker.agent) is not None

    def _steps_of(self, prefix: Prefix) -> int:
        steps = None
        if self.salts.in_use(prefix.client, prefix.cache_salt):
            steps = self.calls.table.least(prefix.client, prefix.agent)
        return IDLE if steps is None else steps

    def _apply(self, changes: list[StepChange]) -> None:
        for client, agent, steps in changes:
            self.prefetcher.note_steps((client, agent), steps)
            # Prefixes of tenants without a run are IDLE since the last of theirs has ended.
            for prefix in self.marks.of((client, agent), self.salts.of(client)):
                self.tree_core.set_steps(prefix, IDLE if steps is None else steps)
        for run, steps_of in self.calls.drain_moved().items():
            for tail in self.tails.of_run(run.client, run.run):
                if tail.workflow == run.workflow:
                    self.tree_core.set_steps(tail, steps_of.get(tail.agent, IDLE))
        for run in self.calls.drain_ended():
            self._run_ended(run.client, run.run)

    def _salts_changed(self, tenants: set[Tenant]) -> None:
        for tenant in sorted(tenants, key=repr):  # as every rank does
            for prefix in self.marks.of_tenant(*tenant):
                self.tree_core.set_steps(prefix, self._steps_of(prefix))

    def _run_ended(self, client: str, run: str) -> None:
        self._salts_changed(self.salts.ended(client, run))
        self.calls.prompts.run_ended(client, run)
        self.calls.run_ended(client, run)
        for tail in self.tails.pop_run(client, run):
            self.tree_core.conversation_ended(tail)
