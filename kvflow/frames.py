"""What a server tells of itself at one moment: the frame, schema version 1.

Made by the engine, read by `kvflow top`, benches and people with `curl`. Additive only: a reader
ignores what it does not know. Neither prompt text nor token ids are in it.
"""

from enum import StrEnum
from typing import Final

import msgspec

SCHEMA_VERSION: Final = 1


class State(StrEnum):
    """Where a node's KV is."""

    DEVICE = "device"
    MIRRORED = "mirrored"  # device and host
    HOST = "host"
    LOADING = "loading"  # host to device, on its way
    OFFLOADING = "offloading"  # device to host, on its way


class Why(StrEnum):
    """What a node's rank comes from (design 4.2)."""

    SPENT = "spent"  # left behind by a finished call, matched by nobody else
    STEPS = "steps"  # a fixed prefix passes through it
    UNTAGGED = "untagged"  # nothing is known of it: ranks as `untagged_steps`
    ACCESS = "access"  # mode off: by its last access alone


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One node of the radix tree."""

    id: int
    parent: int  # 0-depth nodes have the root's id
    tokens: int
    depth: int  # tokens before it
    state: State
    steps: int  # that it ranks as
    why: Why
    agents: tuple[str, ...]  # "client/agent" whose fixed prefix ends here
    locks: int  # users that keep it from being evicted
    hits: int
    last_access: float  # SGLang's logical clock
    children: int


class AgentState(msgspec.Struct, frozen=True, kw_only=True):
    """One agent of one client."""

    client: str
    agent: str
    steps: int | None  # None: no live run has it
    runs: int  # live runs that hold that least value
    in_flight: int
    prefix_tokens: int  # of its longest prefix in the tree; 0 if none is
    device_tokens: int  # of that prefix
    host_tokens: int  # of that prefix, not on the device


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """One tier, in tokens."""

    capacity: int
    free: int
    evictable: int
    locked: int


class EvictionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A node that left a tier."""

    seq: int
    tier: str
    node: int
    tokens: int
    why: Why
    steps: int
    outcome: str  # demoted: a host copy is left; dropped: nothing is


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """What happened since the start; none of these ever falls."""

    tagged_calls: int
    untagged_calls: int
    unexpected_calls: int
    unknown_agents: int
    other_prompt: int
    bad_hints: dict[str, int]
    evicted_device_tokens: int
    evicted_host_tokens: int
    not_backed_up_tokens: int
    expired_runs: int
    prefetches: int = 0  # copies started ahead of need
    prefetched_tokens: int = 0
    prefetched_used_tokens: int = 0  # of these, found by a call
    prefetched_late_tokens: int = 0  # of these, still on their way then
    prefetched_wasted_tokens: int = 0  # evicted before any call found them
    deferred_calls: int = 0  # passed over at least once
    deferred_passes: int = 0


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """A server at one moment."""

    schema_version: int = SCHEMA_VERSION
    mode: str
    page_size: int
    bytes_per_token: int
    untagged_steps: int
    device: Pool
    host: Pool | None
    running: int  # requests in the running batch
    waiting: int
    runs: int
    nodes: tuple[Node, ...]
    nodes_left_out: bool
    agents: tuple[AgentState, ...]
    evictions: tuple[EvictionRecord, ...]
    counters: Counters
    degraded: bool = False  # something of kvflow's failed; SGLang goes on as in mode off
