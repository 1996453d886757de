"""What metrics show of a scheduler, as it goes from its process to the HTTP process each second."""

from typing import Any

import msgspec

from kvflow.engine import frame_parts
from kvflow.engine.cache import KvflowRadixCache
from kvflow.frames import Ages, Counters, Pool, Traffic


class LabelHits(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the prompts of a registered agent were found, in tokens."""

    workflow: str
    agent: str
    calls: int
    device: int
    host: int
    computed: int


class Sample(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The scheduler at one moment. The parts are those of a frame."""

    mode: str
    degraded: bool
    live_runs: int
    tree_nodes: int
    bytes_per_token: int
    device: Pool
    host: Pool | None
    counters: Counters
    traffic: Traffic | None
    ages: Ages
    hits: tuple[LabelHits, ...]


def take(scheduler: Any) -> Sample:
    """A sample of this rank; it costs O(registered agents)."""
    cache: KvflowRadixCache = scheduler.tree_cache
    return Sample(
        mode=cache.mode,
        degraded=cache.degraded,
        live_runs=cache.calls.table.live_runs,
        tree_nodes=len(cache.tree_core._node_arena) - 1,
        bytes_per_token=cache.bytes_per_token,
        device=frame_parts.device_pool(cache),
        host=frame_parts.host_pool(cache),
        counters=frame_parts.counters(cache),
        traffic=frame_parts.traffic(cache),
        ages=frame_parts.ages(cache),
        hits=tuple(
            LabelHits(
                label.workflow,
                label.agent,
                counts.calls,
                counts.device_tokens,
                counts.host_tokens,
                counts.computed_tokens,
            )
            for label, counts in cache.tree_core.ledger.hits.labels()
        ),
    )
