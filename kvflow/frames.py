"""What a server tells of itself at one moment: the frame, schema version 1.

Made by the engine, read by `kvflow top`, benches and people with `curl`. Additive only: a reader
ignores what it does not know. Neither prompt text nor token ids are in it. Nothing in it refers
back, so the collector of garbage has nothing to do with it (`gc=False`): it would cost a scheduler
more than the frame.
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
    """What a node's rank comes from."""

    SPENT = "spent"  # left behind by a finished call, matched by nobody else
    STEPS = "steps"  # a fixed prefix passes through it
    UNTAGGED = "untagged"  # nothing is known of it: ranks as `untagged_steps`
    ACCESS = "access"  # mode off: by its last access alone


class Node(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One node of the radix tree."""

    id: int
    parent: int  # 0-depth nodes have the root's id
    tokens: int
    depth: int  # tokens before it
    state: State
    steps: int  # that it ranks as
    why: Why
    agents: tuple[str, ...]  # "client/agent" whose fixed prefix ends here, at most 64
    locks: int  # users that keep it from being evicted
    hits: int
    last_access: float  # SGLang's logical clock
    children: int


class AgentState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One agent of one client."""

    client: str
    agent: str
    steps: int | None  # None: no live run has it
    runs: int  # live runs that hold that least value
    in_flight: int
    prefix_tokens: int  # of its longest prefix in the tree; 0 if none is
    device_tokens: int  # of that prefix
    host_tokens: int  # of that prefix, not on the device
    end: int | None = None  # the node that ends that prefix
    calls: int = 0  # admitted so far; the next three are of those, and none of the four falls
    hit_device_tokens: int = 0
    hit_host_tokens: int = 0
    computed_tokens: int = 0
    doubted: bool = False  # it seldom speaks when it is so near: nothing is prefetched for it


class Pool(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One tier, in tokens."""

    capacity: int
    free: int
    evictable: int
    locked: int


class EvictionRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that left a tier."""

    seq: int
    tier: str
    node: int
    tokens: int
    why: Why
    steps: int
    outcome: str  # demoted: a host copy is left; dropped: nothing is
    age_s: float | None = None  # since it was last used
    regret: bool = False  # a call has asked for it since, and it was not back in that tier


class PrefetchStatus(StrEnum):
    """What has become of a prefetch."""

    LOADING = "loading"
    ARRIVED = "arrived"  # on the device, asked for by nobody yet
    USED = "used"  # found by a call
    LATE = "late"  # found by a call while it was on its way
    WASTED = "wasted"  # evicted before any call found it


class PrefetchRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A prefix that was brought back ahead of need."""

    seq: int
    node: int  # that ends the prefix
    agent: str  # "client/agent" for whom
    steps: int  # of that agent when the copy was started
    tokens: int
    status: PrefetchStatus


class WaitingCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call in the waiting queue, in queue order."""

    agent: str  # "client/agent"; "" without a tag
    run: str
    prompt_tokens: int
    device_tokens: int  # matched there when it was last looked at
    host_tokens: int
    deferred_passes: int  # passed over so often because its prefix was arriving


class RunState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One live run."""

    client: str
    workflow: str
    run: str
    in_flight: dict[str, int]  # calls by agent
    steps: dict[str, int]  # by agent
    idle_ticks: int  # seconds since its last event, if no call is in flight
    expected: bool  # it has not begun, or stands for the next one as well


class Traffic(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """KV copied between the tiers so far; none of these ever falls but what is pending."""

    h2d_bytes: int
    d2h_bytes: int
    h2d_operations: int
    d2h_operations: int
    demand_bytes: int  # of h2d, loaded because a call was there already
    waits: int  # forwards that had to wait for a load
    h2d_pending_bytes: int
    d2h_pending_bytes: int
    h2d_busy_s: float = 0.0  # that copies took; 0 where the device's events keep no time
    d2h_busy_s: float = 0.0


class Ages(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """For how long KV had not been used, in tokens by age; none of these ever falls.

    A cache is large enough where hits are younger than evictions. Spent KV is not counted as
    evicted: it goes early by design.
    """

    bounds_s: tuple[float, ...]  # upper bounds; one bucket more than bounds
    hit_tokens: tuple[int, ...]
    evicted_tokens: tuple[int, ...]


class Counters(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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
    expired_runs: int  # that fell silent
    evicted_runs: int = 0  # that went because of a limit
    prefetches: int = 0  # copies started ahead of need
    prefetched_tokens: int = 0
    prefetched_used_tokens: int = 0  # of these, found by a call
    prefetched_late_tokens: int = 0  # of these, still on their way then
    prefetched_wasted_tokens: int = 0  # evicted before any call found them
    doubted_hints: int = 0  # times that an agent came near and was not prefetched for, as above
    deferred_calls: int = 0  # passed over at least once
    deferred_passes: int = 0
    hit_device_tokens: int = 0  # of admitted prompts, by where they were found
    hit_host_tokens: int = 0
    computed_tokens: int = 0
    regretted_tokens: int = 0  # of the evicted ones, asked for again, as far as is remembered


class Frame(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A server at one moment.

    With `delta_since`, `nodes` are those that changed after the frame of that `seq`, and `gone`
    those that left the tree; all else is whole. Where `nodes_left_out`, ask again: the next frame
    goes on where this one ends.
    """

    schema_version: int = SCHEMA_VERSION
    mode: str
    page_size: int
    bytes_per_token: int
    untagged_steps: int
    untagged_spare: int | None = None  # tokens of untagged KV that go before the rest is spared
    device: Pool
    host: Pool | None
    running: int  # requests in the running batch
    waiting: int
    runs: int
    nodes: tuple[Node, ...]
    nodes_left_out: bool
    agents: tuple[AgentState, ...]  # at most 256, those of live runs first
    evictions: tuple[EvictionRecord, ...]
    counters: Counters
    degraded: bool = False  # something of kvflow's failed; SGLang goes on as in mode off
    limits: tuple[str, ...] = ()  # SGLang's settings that leave nothing but the eviction order
    seq: int = 0  # grows with every frame; starts anew with the server
    boot: str = ""  # differs after each start of the server
    time_s: float = 0.0  # Unix time
    delta_since: int | None = None
    gone: tuple[int, ...] = ()
    tree_nodes: int = 0  # in the whole tree
    waiting_calls: tuple[WaitingCall, ...] = ()  # the first of the queue
    prefetches: tuple[PrefetchRecord, ...] = ()  # the latest, oldest first
    run_states: tuple[RunState, ...] = ()
    traffic: Traffic | None = None  # None: no host tier
    ages: Ages | None = None
    model: str = ""  # the last part of its path
    uptime_s: float = 0.0  # since the scheduler's process began
    runs_on: str = ""  # cpu, cuda; of the device pool
