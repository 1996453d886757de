"""A small scheduler around a real cache: requests live their lives by SGLang's own functions.

What is left out of SGLang's is what has no hand in the cache: sockets, grammars, the overlap of
two batches. Copies run on threads, but are acknowledged only in `acknowledge`, so that a history
of operations always goes the same way.
"""

from array import array
from collections.abc import Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import support.engine  # noqa: F401 - before SGLang
import torch
from sglang.srt.managers.schedule_batch import FINISH_ABORT, FINISH_LENGTH, Req, release_req
from sglang.srt.managers.schedule_policy import AddReqResult, PrefillAdder, SchedulePolicy
from sglang.srt.mem_cache.allocation import alloc_for_decode, alloc_for_extend
from sglang.srt.mem_cache.base_prefix_cache import CacheRequestOutcome
from sglang.srt.mem_cache.common import checkpoint_kv_cache, release_kv_cache
from sglang.srt.sampling.sampling_params import SamplingParams
from support import kv_values
from support.real_cache import MOST_RUNNING

from kvflow.engine.admission import status_aware
from kvflow.engine.cache import KvflowRadixCache


class MiniScheduler:
    """Requests through a cache.

    Args:
        cache: from `support.real_cache.build`.
        chunk: most tokens of one prefill pass.

    Attributes:
        may_give_up: whether kvflow's tracking may fail.
        hits: (request id, tokens found on the device, tokens found on the host) of each admission.
    """

    def __init__(self, cache: Any, chunk: int = 128) -> None:
        self.cache = cache
        self.tree_cache = cache
        self.waiting_queue: list[Any] = []
        self.running: list[Any] = []
        self.chunked: Any = None
        self.hits: list[tuple[str, int, int]] = []
        self.may_give_up = False
        self.forward_ct = 0
        self.server_args = SimpleNamespace(model_path="/srv/models/tiny")
        self.flush_wrapper = SimpleNamespace(_pending=None)
        sender = SimpleNamespace(socket="of the first rank")
        self.ipc_channels = SimpleNamespace(send_to_tokenizer=sender)
        self._chunk = chunk
        self._ids = count()
        self._policy = SchedulePolicy("fcfs", cache, True, False, False)
        self._adder_class: Any = PrefillAdder
        if isinstance(cache, KvflowRadixCache):
            # What the hooks do (kvflow/engine/hooks.py).
            cache.scheduler = self
            self._adder_class = status_aware(PrefillAdder)

    @property
    def running_batch(self) -> Any:
        return self._batch(self.running)

    # What a client does

    def arrive(
        self,
        token_ids: Sequence[int],
        tag: Any = None,
        *,
        answer: int = 4,
        extra_key: str | None = None,
        cache_salt: str | None = None,
        rid: str | None = None,
    ) -> Any:
        """A request is queued; `tag` is its custom_params, `answer` its number of tokens."""
        req = Req(
            rid=rid or f"r{next(self._ids)}",
            origin_input_text="",
            origin_input_ids=array("q", token_ids),
            sampling_params=SamplingParams(
                temperature=0, max_new_tokens=answer, ignore_eos=True, custom_params=tag
            ),
            extra_key=extra_key,
            cache_salt=cache_salt,
            vocab_size=1 << 20,
        )
        self._queue(req)
        return req

    def abort(self, req: Any) -> None:
        """The client went away."""
        if req in self.waiting_queue:
            self.waiting_queue.remove(req)
            self.cache.finish(req.cache_request_handle, CacheRequestOutcome.ABORT)
        elif req is self.chunked:
            self.chunked = None
            req.finished_reason = FINISH_ABORT("the client went away")
            self.cache.finish(req.cache_request_handle, CacheRequestOutcome.ABORT)
            release_kv_cache(req, self.cache, checkpoint=False)
        else:
            self._finish(req, FINISH_ABORT("the client went away"))

    # What a scheduler does in one pass

    def prefill(self) -> list[Any]:
        """One prefill pass. Returns the requests that are through with it."""
        self._policy.calc_priority(self.waiting_queue, self.running_batch)
        admitted = self._admit()
        consumer = self.cache.ready_to_load_host_cache()
        if not admitted:
            return []
        self.forward_ct += 1
        self._extend(admitted, consumer)
        done = [req for req in admitted if req is not self.chunked]
        for req in done:
            self._answer(req)
        for req in admitted:
            if not req.finished():
                checkpoint_kv_cache(req, self.cache)
        self.running += [req for req in done if not req.finished()]
        self.cache.flush_pending_backups()
        return done

    def decode(self) -> None:
        """One decode step of all running requests; what does not fit is retracted first."""
        while self.running and not self._fits():
            self.retract(self.running[-1])
        if not self.running:
            return
        self.forward_ct += 1
        batch = self.running_batch
        batch.seq_lens = batch.seq_lens_cpu = torch.tensor([r.seqlen - 1 for r in batch.reqs])
        rows = torch.tensor([r.kv.req_pool_idx for r in batch.reqs])
        batch.req_pool_indices = batch.req_pool_indices_cpu = rows
        alloc_for_decode(batch, token_per_req=1)
        for req in batch.reqs:
            self._forward(req, read=req.seqlen - 1, up_to=req.seqlen)
        for req in batch.reqs:
            self._answer(req)
        self.cache.flush_pending_backups()

    def retract(self, req: Any) -> None:
        """A running request gives its slots to others and queues again."""
        self._release(req)
        self._queue(req)

    def _release(self, req: Any) -> None:
        self.running.remove(req)
        release_req(
            req=req,
            remaing_req_count=len(self.running),
            req_to_token_pool=self.cache.req_to_token_pool,
            token_to_kv_pool_allocator=self.cache.token_to_kv_pool_allocator,
            tree_cache=self.cache,
            hisparse_coordinator=None,
        )

    def give_up(self, req: Any) -> None:
        """There is no memory for a running request, and none could be freed for it."""
        req.to_finish = FINISH_ABORT("out of memory")
        self._release(req)

    def finish_copies(self) -> None:
        """All copies that were started are complete; the cache has not heard of it."""
        controller = self.cache.cache_controller
        if controller is None:
            return
        self.cache.flush_pending_backups()
        for ack in [*controller.ack_write_queue, *controller.ack_load_queue]:
            ack.finish_event.synchronize()

    def acknowledge(self) -> None:
        """All copies that were started are complete, and the cache hears of it."""
        if self.cache.cache_controller is not None:
            self.finish_copies()
            self.cache.check_hicache_events()

    def flush(self) -> None:
        """SGLang's /flush_cache: everything is forgotten, when nothing runs."""
        assert not self.running
        assert self.chunked is None
        self.acknowledge()
        self.cache.reset()
        self.cache.req_to_token_pool.clear()
        self.cache.token_to_kv_pool_allocator.clear()

    def drain(self) -> None:
        """Let everything that is in flight come to its end, and all copies too."""
        while self.waiting_queue or self.running or self.chunked:
            self.prefill()
            self.decode()
            self.acknowledge()
        while self.cache.ongoing_load_back or self.cache.ongoing_write_through:
            self.acknowledge()
        gave_up = getattr(self.cache, "degraded", False)
        assert self.may_give_up or not gave_up, "kvflow gave up; the log says why"

    def serve(self, token_ids: Sequence[int], tag: Any = None, **kwargs: Any) -> Any:
        """A whole call, alone, with all its copies."""
        req = self.arrive(token_ids, tag, **kwargs)
        self.drain()
        return req

    def _queue(self, req: Any) -> None:
        self.waiting_queue.append(req)
        if isinstance(self.cache, KvflowRadixCache):
            self.cache.call_arrived(req)

    def _admit(self) -> list[Any]:
        adder = self._adder_class(
            self.cache.page_size,
            self.cache,
            self.cache.token_to_kv_pool_allocator,
            self.running_batch,
            1.0,
            1 << 20,
            self._chunk,
        )
        if self.chunked is not None:
            self.chunked.init_next_round_input()
            self.chunked = adder.add_chunked_req(self.chunked)
        for req in list(self.waiting_queue):
            if len(self.running) + len(adder.can_run_list) >= MOST_RUNNING:
                break
            req.init_next_round_input(self.cache)
            found = (req.rid, req.prefix_len, req.host_hit_length)
            result = adder.add_one_req(
                req, has_chunked_req=self.chunked is not None, truncation_align_size=None
            )
            if req in adder.can_run_list:
                self.waiting_queue.remove(req)
                self.hits.append(found)
            if result is not AddReqResult.CONTINUE:
                break
        if adder.new_chunked_req is not None:
            self.chunked = adder.new_chunked_req
        return list(adder.can_run_list)

    def _extend(self, reqs: list[Any], consumer: int) -> None:
        batch = self._batch(reqs)
        batch.prefix_lens = [req.prefix_len for req in reqs]
        batch.extend_lens = [req.extend_len for req in reqs]
        batch.extend_num_tokens = sum(batch.extend_lens)
        batch.seq_lens = batch.seq_lens_cpu = torch.tensor([req.extend_end for req in reqs])
        alloc_for_extend(batch)
        self._wait_for(consumer)
        for req in reqs:
            self._forward(req, read=req.prefix_len, up_to=req.extend_end)
        self._wait_for(-1)

    def _wait_for(self, consumer: int) -> None:
        """As SGLang's worker: from now on reads wait, layer by layer, for this load (-1: none)."""
        if self.cache.cache_controller is not None:
            self.cache.cache_controller.layer_done_counter.set_consumer(consumer)

    def _forward(self, req: Any, read: int, up_to: int) -> None:
        """Read the KV of the first `read` tokens, then write that of those up to `up_to`."""
        token_ids = (req.origin_input_ids + req.output_ids)[:up_to]
        expected = kv_values.values(token_ids, req.extra_key)
        row = self.cache.req_to_token_pool.req_to_token[req.kv.req_pool_idx].long()
        kv_values.check_read(self.cache, row[:read], expected[:read], f"hit of {req.rid}")
        kv_values.write(self.cache, row[read:up_to], expected[read:])

    def _answer(self, req: Any) -> None:
        """The next token of an answer; it depends on the prompt alone."""
        req.output_ids.append(1000 + (sum(req.origin_input_ids) + len(req.output_ids)) % 5)
        if len(req.output_ids) >= req.sampling_params.max_new_tokens:
            self._finish(req, FINISH_LENGTH(length=len(req.output_ids)))

    def _finish(self, req: Any, reason: Any) -> None:
        req.finished_reason = reason
        if req in self.running:
            self.running.remove(req)
        release_kv_cache(req, self.cache, checkpoint=True)

    def _fits(self) -> bool:
        page = self.cache.page_size
        new_pages = sum((req.seqlen - 1) % page == 0 for req in self.running)
        return bool(
            self.cache.token_to_kv_pool_allocator.check_decode_capacity(
                num_tokens=new_pages * page, tree_cache=self.cache
            )
        )

    def _batch(self, reqs: list[Any]) -> Any:
        return SimpleNamespace(
            reqs=list(reqs),
            device="cpu",
            batch_is_full=False,
            tree_cache=self.cache,
            req_to_token_pool=self.cache.req_to_token_pool,
            hisparse_coordinator=None,
            model_config=SimpleNamespace(is_encoder_decoder=False),
            maybe_evict_swa=lambda: None,
            is_dllm=lambda: False,
        )
