"""What one operation on the radix tree costs, core against core, in one run.

    python benchmarks/tree_cost.py
    python benchmarks/tree_cost.py --core rust --core mine=package.module:register --json

Needs the engine extra, no GPU: device tier only, full attention, a pool of CPU tensors. Every core
gets the same traffic, in short turns, under prefixes that many leaves share. It carries no hints,
so every core has to evict the least recently used leaf; the benchmark checks that, for otherwise
the cores would not be doing the same work. Times are CPU time, so that a busy machine does not
count.
"""

from __future__ import annotations  # array[int] is no run-time type before Python 3.12

import argparse
import gc
import importlib
import itertools
import json
import random
import statistics
import sys
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from kvflow.errors import KvflowError, MissingPart, UsageError

PREFIXES, PREFIX_TOKENS, TAIL_TOKENS = 32, 64, 8
OPERATIONS = ("match", "lock", "evict", "insert")
DEFAULT_CORES = ["rust", "python", "kvflow=kvflow.engine.plugin:register_backend"]
BLOCK = 25  # rounds of one core before the next has its turn: none finds its tree out of the cache


class Row(NamedTuple):
    """One line of the result. Times in microseconds of CPU."""

    leaves: int
    core: str
    operation: str
    median_us: float
    p99_us: float


class Subject:
    """A radix cache on one core, and the leaves it must hold by what was done to it."""

    def __init__(self, core: str, leaves: int, seed: int) -> None:
        self.core = core
        self.times: dict[str, list[float]] = {name: [] for name in OPERATIONS}
        self._cache, self._allocator = build_cache(
            core, PREFIXES * PREFIX_TOKENS + leaves * TAIL_TOKENS
        )
        self._random = random.Random(seed)
        self._fresh_token = itertools.count()
        self._made = 0
        self._by_age: OrderedDict[int, array[int]] = OrderedDict()  # of each leaf, oldest first
        self._prefixes = [self._tokens(PREFIX_TOKENS) for _ in range(PREFIXES)]
        for prefix in self._prefixes:
            self._insert(prefix, there=0)
        for _ in range(leaves):
            self.insert()

    def step(self, operation: str) -> None:
        """Do one operation and note how long it took."""
        self.times[operation].append(getattr(self, operation)())

    def match(self) -> float:
        """Match a random leaf, which touches its path. Returns microseconds, as all of these."""
        from sglang.srt.mem_cache.base_prefix_cache import MatchPrefixParams
        from sglang.srt.mem_cache.radix_cache import RadixKey

        leaf = self._random.randrange(self._made)
        while leaf not in self._by_age:
            leaf = self._random.randrange(self._made)
        tokens = self._by_age[leaf]
        took, result = timed(self._cache.match_prefix, MatchPrefixParams(key=RadixKey(tokens)))
        if result.device_prefix_len != len(tokens):
            raise KvflowError(
                f"core {self.core} no longer holds leaf {leaf}",
                "it evicted another than the least recently used one",
            )
        self._matched = result.last_device_node
        self._by_age.move_to_end(leaf)
        return took

    def lock(self) -> float:
        """Lock and unlock the path matched last, as a call does when it starts and ends."""
        return timed(lambda: self._cache.unlock(self._cache.lock(self._matched)))[0]

    def evict(self) -> float:
        """Evict one leaf."""
        from sglang.srt.mem_cache.base_prefix_cache import EvictParams

        took, result = timed(self._cache.evict, EvictParams(num_tokens=TAIL_TOKENS))
        if result.num_tokens_evicted != TAIL_TOKENS:
            raise KvflowError(
                f"core {self.core} evicted {result.num_tokens_evicted} tokens",
                f"one leaf, {TAIL_TOKENS} tokens, was to go",
            )
        self._by_age.popitem(last=False)
        return took

    def insert(self) -> float:
        """Insert a new leaf below a random prefix."""
        tokens = self._random.choice(self._prefixes) + self._tokens(TAIL_TOKENS)
        self._by_age[self._made] = tokens
        self._made += 1
        return self._insert(tokens, there=PREFIX_TOKENS)

    def _tokens(self, count: int) -> array[int]:
        return array("q", itertools.islice(self._fresh_token, count))

    def _insert(self, tokens: array[int], there: int) -> float:
        import torch
        from sglang.srt.mem_cache.base_prefix_cache import InsertParams
        from sglang.srt.mem_cache.radix_cache import RadixKey

        # The tree has its own slots for the part that is there, and does not read these zeros.
        slots = torch.zeros(len(tokens), dtype=torch.int64)
        slots[there:] = self._allocator.alloc(len(tokens) - there)
        params = InsertParams(key=RadixKey(tokens), value=slots, prev_prefix_len=there)
        return timed(self._cache.insert, params)[0]


def build_cache(core: str, tokens: int) -> tuple[Any, Any]:
    """A radix cache of SGLang on the named core, and the allocator of its `tokens` slots."""
    import torch
    from sglang.srt.mem_cache.allocator import TokenToKVPoolAllocator
    from sglang.srt.mem_cache.cache_init_params import CacheInitParams
    from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, ReqToTokenPool
    from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
    from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache

    where: dict[str, Any] = {"device": "cpu", "enable_memory_saver": False}
    kind = torch.bfloat16
    pool = MHATokenToKVPool(
        tokens, page_size=1, dtype=kind, head_num=1, head_dim=1, layer_num=1, **where
    )
    allocator = TokenToKVPoolAllocator(tokens, kind, "cpu", pool, need_sort=False)
    params = CacheInitParams(
        disable=False,
        req_to_token_pool=ReqToTokenPool(size=1, max_context_len=1, **where),
        token_to_kv_pool_allocator=allocator,
        page_size=1,
        tree_components=(ComponentType.FULL,),
        tree_core_backend=core,
    )
    if core == "kvflow":  # its walk is a component of its own
        from kvflow.engine.component import KvflowFullComponent

        params.component_registry_override = {ComponentType.FULL: KvflowFullComponent}
    return UnifiedRadixCache(params), allocator


def timed(call: Callable[..., Any], *args: Any) -> tuple[float, Any]:
    """Microseconds of CPU that a call took, and what it returned."""
    began = time.thread_time_ns()
    result = call(*args)
    return (time.thread_time_ns() - began) / 1_000, result


def register(cores: list[str]) -> list[str]:
    """Names of the cores to compare; those given as NAME=MODULE:FUNCTION are registered first."""
    try:
        from sglang.srt.mem_cache.unified_cache import tree_core_registry
    except ImportError as error:
        raise MissingPart(
            "SGLang cannot be imported", str(error), "pip install 'kvflow[engine]'"
        ) from error
    names = []
    for core in cores:
        name, _, where = core.partition("=")
        if where:
            module, _, function = where.partition(":")
            try:
                getattr(importlib.import_module(module), function)()
            except (ImportError, AttributeError) as error:
                raise UsageError(f"--core {core}", str(error)) from error
        known = tree_core_registry.registered_tree_core_backends()
        if name not in known:
            raise UsageError(
                f"--core {core}: no core of that name", hint=f"registered: {', '.join(known)}"
            )
        names.append(name)
    return names


def compare(cores: list[str], leaves: int, blocks: int, seed: int) -> Iterator[Row]:
    """Do the same on every core, in turn, and measure each operation."""
    subjects = [Subject(core, leaves, seed) for core in cores]
    gc.collect()
    gc.freeze()  # as /freeze_gc of SGLang: else p99 is the price of searching trees for garbage
    for _ in range(blocks):
        for subject in subjects:
            for _, operation in itertools.product(range(BLOCK), OPERATIONS):
                subject.step(operation)
    gc.unfreeze()
    for operation, subject in itertools.product(OPERATIONS, subjects):
        times = subject.times[operation]
        p99 = statistics.quantiles(times, n=100, method="inclusive")[-1]
        yield Row(leaves, subject.core, operation, statistics.median(times), p99)


def show(rows: list[Row]) -> None:
    """Print a table: a line for each size and core, median and p99 of each operation."""
    table = Table(title="microseconds of CPU: median (p99)", title_justify="left")
    for title in ("leaves", "core", *OPERATIONS):
        table.add_column(title, justify="left" if title == "core" else "right")
    lines: dict[tuple[int, str], list[str]] = {}
    for row in rows:
        cell = f"{row.median_us:,.0f} ({row.p99_us:,.0f})"
        lines.setdefault((row.leaves, row.core), []).append(cell)
    for (leaves, core), cells in lines.items():
        table.add_row(f"{leaves:,}", core, *cells)
    Console().print(table)


def main() -> None:
    """Read the command line, compare, print."""
    parser = argparse.ArgumentParser(description="Cost of radix tree operations, by core.")
    parser.add_argument(
        "--core",
        action="append",
        metavar="NAME[=MODULE:FUNCTION]",
        help="a registered tree core, or one that FUNCTION registers (default: all three)",
    )
    parser.add_argument("--leaves", type=int, nargs="+", default=[1_000, 10_000, 50_000])
    parser.add_argument("--blocks", type=int, default=8, help=f"turns a core, {BLOCK} rounds each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    if min(given.leaves) < 10 * PREFIXES or given.blocks < 1:
        parser.error(f"at least {10 * PREFIXES} leaves and 1 block are needed")
    try:
        cores = register(given.core or DEFAULT_CORES)
        rows: list[Row] = []
        for leaves in given.leaves:
            print(f"{leaves:,} leaves: {', '.join(cores)}", file=sys.stderr)
            rows += compare(cores, leaves, given.blocks, given.seed)
    except KvflowError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    if given.json:
        json.dump(
            {"rounds": given.blocks * BLOCK, "rows": [row._asdict() for row in rows]}, sys.stdout
        )
        print()
    else:
        show(rows)


if __name__ == "__main__":
    main()
