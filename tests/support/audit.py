"""Watching a real cache: every victim against a sort of all leaves, every slot accounted for."""

from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import support.engine  # noqa: F401 - before SGLang
import torch
from sglang.srt.managers.schedule_batch import FINISH_ABORT
from support.mini_scheduler import MiniScheduler
from support.rank_oracle import RankOracle
from support.real_cache import FULL, host_pool, nodes, tokens_to

from kvflow.engine.cache import KvflowRadixCache


class Victim(NamedTuple):
    """A node that left a tier, by its tokens: ids differ from one cache to the next."""

    tier: str
    path: tuple[int, ...]
    namespace: str | None


class Recorder:
    """Victims of both tiers of any cache whose tree core is Python, in order."""

    def __init__(self, cache: Any) -> None:
        self.core = cache.tree_core
        self.victims: list[Victim] = []
        _before(self.core, "evict_device_leaf", self._device)
        _before(self.core, "_evict_host_leaf", self._host)

    def _device(self, node_id: int, *_: Any) -> None:
        self._note("device", self.core.node_by_id(node_id))

    def _host(self, node: Any, *_: Any, **__: Any) -> None:
        self._note("host", node)

    def _note(self, tier: str, node: Any) -> None:
        self.victims.append(Victim(tier, tuple(tokens_to(node)), node.key.extra_key))


class Audit(Recorder):
    """Victims of a kvflow cache, each held against two sorts: of kvflow's ranks, of the oracle's.

    Attributes:
        oracle: told of everything that happens to the cache.
    """

    def __init__(self, cache: KvflowRadixCache) -> None:
        super().__init__(cache)
        self.cache = cache
        self.oracle = RankOracle(cache)
        self._taken: set[int] = set()
        self._watch_calls()
        self._watch_nodes()

    def check_ranks(self) -> None:
        """Every node ranks as the oracle says, and each order holds the leaves of its tier."""
        assert not self.cache.degraded, "kvflow gave up; the log says why"
        for node in nodes(self.cache):
            assert self.core.rank(node) == self.oracle.rank(node), f"node {node.id}"
        for leaves, order in (
            (self.core.evictable_device_leaves, self.core.device_order),
            (self.core.evictable_host_leaves, self.core.host_order),
        ):
            assert len(leaves) == len(order)
            assert all(leaf in order for leaf in leaves)
        untagged = [n for n in nodes(self.cache) if not n.evicted and self.oracle.is_untagged(n)]
        assert self.core.share.resident == sum(len(node.key) for node in untagged)

    def _device(self, node_id: int, *_: Any) -> None:
        super()._device(node_id)
        leaves = [n for n in nodes(self.cache) if self.core._is_device_leaf(n)]
        left = [leaf for leaf in leaves if leaf.id not in self._taken]
        if self.cache.mode != "off" and self.core.share.spare <= 0:
            left = [leaf for leaf in left if not self.oracle.is_untagged(leaf)] or left
        self._judge(node_id, left)
        self._taken.add(node_id)

    def _host(self, node: Any, *args: Any, **kwargs: Any) -> None:
        super()._host(node, *args, **kwargs)
        self._judge(node.id, [n for n in nodes(self.cache) if self.core._is_host_leaf(n)])

    def _judge(self, victim: int, leaves: list[Any]) -> None:
        assert victim == min(leaves, key=self.oracle.rank).id
        assert victim == min(leaves, key=self.core.rank).id

    def _watch_calls(self) -> None:
        cache, oracle = self.cache, self.oracle
        _before(cache, "_run_ended", oracle.run_ended)
        _before(cache, "finish", lambda handle, _: oracle.calls.pop(handle.rid, None))
        _before(cache, "reset", oracle.forget_tree)
        stock_match, stock_checkpoint = cache.match_prefix, cache.checkpoint_into_tree
        stock_arrived = cache.call_arrived

        def call_arrived(req: Any) -> None:
            oracle.arrived(req)
            stock_arrived(req)
            oracle.admitted(req)

        def match_prefix(params: Any) -> Any:
            result = stock_match(params)
            if params.req is not None:
                oracle.matched(params.req.rid, result.best_match_node)
            return result

        def checkpoint_into_tree(req: Any, *, up_to: int, **kwargs: Any) -> None:
            inserted_before = req.kv.cache_inserted_len
            stock_checkpoint(req, up_to=up_to, **kwargs)
            oracle.inserted(req, inserted_before, up_to)

        def on_release(req: Any, **_: Any) -> None:
            if req.finished():
                oracle.finished(req, isinstance(req.finished_reason, FINISH_ABORT))

        cache.call_arrived = call_arrived  # type: ignore[method-assign]
        cache.match_prefix = match_prefix  # type: ignore[method-assign]
        cache.checkpoint_into_tree = checkpoint_into_tree  # type: ignore[method-assign]
        _before(cache, "on_release", on_release)

    def _watch_nodes(self) -> None:
        _before(self.core, "evict_device_start", lambda *_: self._taken.clear())
        _before(self.core, "_remove_leaf_from_parent", self.oracle.removed)


def check_tree(cache: Any) -> None:
    """SGLang's own check of its tree, whatever is in flight.

    It counts a node that is loading as one that has its copy on both tiers, but notes it as such
    only when the load is complete: SGLang's own core fails its check in between, too.
    """
    core = cache.tree_core
    loading: dict[int, Any] = {}
    for anchor in cache.ongoing_load_back:
        node = core.node_by_id(anchor)
        while node is not core.root_node:
            if core._is_settled_full_host_duplicate(node):
                loading[node.id] = node
            node = node.parent
    with mock.patch.dict(core.full_host_duplicates, loading):
        cache.sanity_check()


def check_slots(scheduler: MiniScheduler) -> None:
    """Every page of both pools is free, in the tree or a request's, and in one place only."""
    cache, page = scheduler.cache, scheduler.cache.page_size
    allocator = cache.token_to_kv_pool_allocator
    held = []
    for req in [*scheduler.running, *([scheduler.chunked] if scheduler.chunked else [])]:
        row = cache.req_to_token_pool.req_to_token[req.kv.req_pool_idx]
        own = row[req.kv.cache_protected_len : req.kv.kv_allocated_len]
        held += (own // page).unique().tolist()
    in_tree = _pages(cache, "value", page)
    free = allocator.get_all_free_pages().tolist()
    assert sorted([*free, *in_tree, *held]) == list(range(1, allocator.size // page + 1))
    resident = cache.evictable_size() + cache.protected_size()
    assert resident == len(in_tree) * page
    if cache.cache_controller is not None:
        host = host_pool(cache)
        free = [slot for chunk in [host.free_slots, *host.release_slots] for slot in chunk.tolist()]
        in_tree = _pages(cache, "host_value", 1)
        assert sorted([*free, *in_tree]) == list(range(host.size))


def _pages(cache: Any, tier: str, page: int) -> list[int]:
    values = [getattr(node.component_data[FULL], tier) for node in nodes(cache)]
    slots = [value[::page] for value in values if value is not None]
    return (torch.cat(slots) // page).tolist() if slots else []


def _before(owner: Any, name: str, listener: Callable[..., Any]) -> None:
    """Have a method of one object tell the listener what it is about to do."""
    method = getattr(owner, name)

    def told(*args: Any, **kwargs: Any) -> Any:
        listener(*args, **kwargs)
        return method(*args, **kwargs)

    setattr(owner, name, told)
