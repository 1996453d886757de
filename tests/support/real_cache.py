"""A real device pool, a real host pool and a real radix cache of SGLang, kvflow's or its own."""

import atexit
import json
import os
from collections.abc import Iterator
from typing import Any, Literal
from unittest import mock

import support.engine  # noqa: F401 - before SGLang
import torch
from sglang.srt.mem_cache import registry
from sglang.srt.mem_cache.allocator import TokenToKVPoolAllocator
from sglang.srt.mem_cache.allocator.paged import PagedTokenToKVPoolAllocator
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, ReqToTokenPool
from sglang.srt.mem_cache.unified_cache.components import ComponentType
from sglang.srt.server_args import ServerArgs, set_global_server_args_for_scheduler

from kvflow.engine.settings import VARIABLE

Core = Literal["kvflow", "python", "rust"]
FULL = ComponentType.FULL
LAYERS = 2
MOST_RUNNING = 8
LONGEST = 2048  # tokens of a request


class NoWorker:
    """Stands for the model worker, which only wants to know the counter of loaded layers."""

    def register_hicache_layer_transfer_counter(self, counter: Any) -> None: ...


def server_args(page_size: int, host_ratio: float, core: Core, policy: str) -> Any:
    return ServerArgs(
        model_path="dummy",
        device="cpu",
        page_size=page_size,
        attention_backend="torch_native",
        enable_hierarchical_cache=host_ratio > 0,
        hicache_ratio=host_ratio or 1.0,
        hicache_io_backend="direct",
        hicache_mem_layout="layer_first",
        hicache_write_policy=policy,
        radix_cache_backend="kvflow" if core == "kvflow" else None,
    )


def build_context(
    page_size: int = 1,
    *,
    tokens: int = 256,
    host_ratio: float = 2.0,
    core: Core = "kvflow",
    policy: str = "write_through",
) -> Any:
    """What SGLang hands to the factory of a radix cache.

    Args:
        page_size: tokens a page.
        tokens: of the device pool.
        host_ratio: host pool by device pool; 0 for no host tier.
        core: whose tree core.
        policy: SGLang's write policy of the host tier.
    """
    args = server_args(page_size, host_ratio, core, policy)
    set_global_server_args_for_scheduler(args)
    kv = MHATokenToKVPool(
        size=tokens,
        page_size=page_size,
        dtype=torch.float32,
        head_num=1,
        head_dim=2,
        layer_num=LAYERS,
        device="cpu",
        enable_memory_saver=False,
    )
    pool: dict[str, Any] = {
        "size": tokens,
        "dtype": torch.float32,
        "device": "cpu",
        "kvcache": kv,
        "need_sort": False,
    }
    allocator = (
        TokenToKVPoolAllocator(**pool)
        if page_size == 1
        else PagedTokenToKVPoolAllocator(page_size=page_size, **pool)
    )
    rows = ReqToTokenPool(
        size=MOST_RUNNING, max_context_len=LONGEST, device="cpu", enable_memory_saver=False
    )
    params = CacheInitParams(
        req_to_token_pool=rows,
        token_to_kv_pool_allocator=allocator,
        page_size=page_size,
        disable=False,
    )
    params.tree_core_backend = core
    return registry.TreeCacheBuildContext(
        server_args=args,
        params=params,
        is_hybrid_swa=False,
        is_hybrid_ssm=False,
        enable_hierarchical_cache=host_ratio > 0,
        disable_radix_cache=False,
        tp_worker=NoWorker(),
        model_config=None,
        tp_size=1,
        tp_rank=0,
        tp_group=None,
    )


def build(page_size: int = 1, *, settings: dict[str, Any] | None = None, **kwargs: Any) -> Any:
    """A radix cache as a scheduler builds it; `settings` are those of KVFLOW_CONFIG."""
    context = build_context(page_size, **kwargs)
    with mock.patch.dict(os.environ, {VARIABLE: json.dumps(settings or {})}):
        cache = registry.create_tree_cache(context)
    atexit.unregister(cache.shutdown)  # SGLang keeps every cache until the process ends
    return cache


def nodes(cache: Any) -> Iterator[Any]:
    """The nodes of the tree without the root, parents first."""
    todo = [cache.tree_core.root_node]
    while todo:
        children = list(todo.pop().children.values())
        yield from children
        todo += children


def tokens_to(node: Any) -> list[int]:
    """Token ids from the root to the end of a node."""
    keys = []
    while node.parent is not None:
        keys.append(list(node.key.raw_token_ids()))
        node = node.parent
    return [token for key in reversed(keys) for token in key]


def host_pool(cache: Any) -> Any:
    """The host pool of the full attention KV."""
    return cache.cache_controller.mem_pool_host.anchor_entry.host_pool
