"""A prompt with a fixed prefix, and questions about what a real cache made of it."""

from typing import Any

import support.engine  # noqa: F401 - before SGLang
from sglang.srt.mem_cache.base_prefix_cache import EvictParams
from support.audit import Recorder
from support.mini_scheduler import MiniScheduler
from support.real_cache import build, host_pool, nodes, tokens_to

PREFIX = list(range(100, 130))
TAIL = [1, 2, 3, 4, 5]
PROMPT = PREFIX + TAIL


def scheduler(
    page: int = 1, mode: str = "evict", *, chunk: int = 128, **kwargs: Any
) -> MiniScheduler:
    """A scheduler with a cache of its own; `kwargs` as of `support.real_cache.build`."""
    return MiniScheduler(build(page, settings={"mode": mode}, **kwargs), chunk)


def node_at(cache: Any, token_ids: list[int]) -> Any:
    """The node that ends with these tokens; None if there is none."""
    return next((node for node in nodes(cache) if tokens_to(node) == token_ids), None)


def steps_at(cache: Any, token_ids: list[int]) -> int:
    """What the node that ends with these tokens ranks as."""
    return -cache.tree_core.rank(node_at(cache, token_ids))[1]


def mark_end(cache: Any, agent: str = "a", client: str = "app", key: str | None = None) -> int:
    """Tokens of the marked prefix of an agent; 0 without a mark."""
    node = cache.tree_core.ranks.end((client, agent, key, None))
    return 0 if node is None else cache.tree_core.depth(node)


def evict_all(cache: Any) -> list[list[int]]:
    """Evict the whole device. Returns the tokens up to each victim's end, in order."""
    recorder = Recorder(cache)
    cache.evict(EvictParams(num_tokens=cache.evictable_size()))
    return [list(victim.path) for victim in recorder.victims]


def on_host(cache: Any) -> int:
    """Tokens that have a copy on the host."""
    return host_pool(cache).size - host_pool(cache).available_size()
