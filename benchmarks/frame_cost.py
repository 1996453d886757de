"""What a frame costs the scheduler's thread: of a tree of 10,000 nodes, built and encoded.

    python benchmarks/frame_cost.py
    python benchmarks/frame_cost.py --nodes 50000 --agents 64 --json

Needs the engine extra, no GPU. Between two frames a real radix cache changes by so many calls; a
frame then carries the nodes that these changed (`quiet`, `busy`). A reader that has nothing begins
with one `first` frame and reads the tree in `key` frames, as full as a frame may be. Times are CPU
time of building the frame and of writing it as JSON, so that a busy machine does not count.
"""

import argparse
import gc
import json
import os
import random
import statistics
import sys
import time
from array import array
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

GOAL_MS = 1.0
KINDS = {"quiet": 1, "busy": 16, "first": 0, "key": 0}  # calls between two frames
PREFIX_TOKENS, TAIL_TOKENS = 64, 8


class Row(NamedTuple):
    """One kind of frame. Times in milliseconds of CPU."""

    kind: str
    tree_nodes: int
    frame_nodes: float  # in the mean
    kilobytes: float
    median_ms: float
    p99_ms: float


def build_cache(tokens: int) -> Any:
    """A radix cache of kvflow's over a pool of CPU tensors, without a host tier."""
    import torch
    from sglang.srt.mem_cache.allocator import TokenToKVPoolAllocator
    from sglang.srt.mem_cache.cache_init_params import CacheInitParams
    from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, ReqToTokenPool
    from sglang.srt.mem_cache.unified_cache.component_type import ComponentType

    from kvflow.engine import plugin
    from kvflow.engine.cache import KvflowRadixCache
    from kvflow.engine.component import KvflowFullComponent

    plugin.register_backend()
    where: dict[str, Any] = {"device": "cpu", "enable_memory_saver": False}
    kind = torch.bfloat16
    pool = MHATokenToKVPool(
        tokens, page_size=1, dtype=kind, head_num=1, head_dim=1, layer_num=1, **where
    )
    return KvflowRadixCache(
        CacheInitParams(
            disable=False,
            req_to_token_pool=ReqToTokenPool(size=1, max_context_len=1, **where),
            token_to_kv_pool_allocator=TokenToKVPoolAllocator(
                tokens, kind, "cpu", pool, need_sort=False
            ),
            page_size=1,
            tree_components=(ComponentType.FULL,),
            tree_core_backend=plugin.BACKEND,
            component_registry_override={ComponentType.FULL: KvflowFullComponent},
        )
    )


class Subject:
    """A cache with a tree of so many nodes, under the prefixes of agents that have steps."""

    def __init__(self, nodes: int, agents: int) -> None:
        leaves = nodes - agents
        self._cache = build_cache(agents * PREFIX_TOKENS + leaves * TAIL_TOKENS)
        self._random = random.Random(1)
        self._fresh = 0
        self._prefixes = [self._tokens(PREFIX_TOKENS) for _ in range(agents)]
        for number, prefix in enumerate(self._prefixes):
            node = self._insert(prefix, there=0)
            owner = ("app", f"agent{number}")
            self._cache.marks.add(owner, (*owner, None, None))
            self._cache.tree_core.place((*owner, None, None), node, number % 8 + 1)
        for _ in range(leaves):
            self.call()
        self.scheduler: Any = SimpleNamespace(
            tree_cache=self._cache, running_batch=SimpleNamespace(reqs=[]), waiting_queue=[]
        )

    def call(self) -> None:
        """A call under one of the prefixes: the oldest leaf goes, a new one comes."""
        from sglang.srt.mem_cache.base_prefix_cache import EvictParams, MatchPrefixParams
        from sglang.srt.mem_cache.radix_cache import RadixKey

        prefix = self._random.choice(self._prefixes)
        self._cache.match_prefix(MatchPrefixParams(key=RadixKey(prefix)))
        if self._cache.token_to_kv_pool_allocator.available_size() < TAIL_TOKENS:
            self._cache.evict(EvictParams(num_tokens=TAIL_TOKENS))
        self._insert(prefix + self._tokens(TAIL_TOKENS), there=PREFIX_TOKENS)

    def _insert(self, tokens: "array[int]", there: int) -> int:
        import torch
        from sglang.srt.mem_cache.base_prefix_cache import InsertParams
        from sglang.srt.mem_cache.radix_cache import RadixKey

        # The tree has its own slots for the part that is there, and does not read these zeros.
        slots = torch.zeros(len(tokens), dtype=torch.int64)
        slots[there:] = self._cache.token_to_kv_pool_allocator.alloc(len(tokens) - there)
        params = InsertParams(key=RadixKey(tokens), value=slots, prev_prefix_len=there)
        return int(self._cache.insert(params).last_device_node)

    def _tokens(self, count: int) -> "array[int]":
        self._fresh += count
        return array("q", range(self._fresh - count, self._fresh))


def measure(subject: Subject, kind: str, frames: int) -> Row:
    """Take so many frames of one kind."""
    from kvflow.engine import snapshot

    times, nodes, sizes = [], [], []
    frame = _caught_up(subject)
    for _ in range(frames):
        for _ in range(KINDS[kind]):
            subject.call()
        if kind == "first":
            since = 0
        elif kind == "key" and not frame.nodes_left_out:
            since = snapshot.follow(subject.scheduler, 0).seq
        else:
            since = frame.seq
        began = time.thread_time()
        frame = snapshot.follow(subject.scheduler, since)
        text = msgspec.json.encode(frame).decode()
        times.append((time.thread_time() - began) * 1e3)
        nodes.append(len(frame.nodes))
        sizes.append(len(text) / 1e3)
    times.sort()
    return Row(
        kind,
        frame.tree_nodes,
        statistics.mean(nodes),
        statistics.mean(sizes),
        statistics.median(times),
        times[int(len(times) * 0.99)],
    )


def _caught_up(subject: Subject) -> Any:
    """The frame with which a reader has the whole tree."""
    from kvflow.engine import snapshot

    frame = snapshot.follow(subject.scheduler, 0)
    while frame.nodes_left_out:
        frame = snapshot.follow(subject.scheduler, frame.seq)
    return frame


def main() -> int:
    """Measure, and say it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=10_000, help="of the tree")
    parser.add_argument("--agents", type=int, default=20, help="that have a fixed prefix in it")
    parser.add_argument("--frames", type=int, default=200, help="of each kind")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    os.environ.update(KVFLOW_DEVICE="cpu", SGLANG_PLATFORM="kvflow_cpu")
    subject = Subject(options.nodes, options.agents)
    gc.collect()
    gc.freeze()  # as /freeze_gc of SGLang: else p99 is the price of searching trees for garbage
    rows = [measure(subject, kind, options.frames) for kind in KINDS]
    if options.json:
        print(json.dumps([row._asdict() for row in rows], indent=1))
        return 0
    table = Table(title=f"One frame on the scheduler's thread; goal {GOAL_MS:g} ms")
    for name in Row._fields:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            *(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row)
        )
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
