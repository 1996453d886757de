"""Frames for tests: small ones by hand, large ones at random, and servers that change."""

import random
from typing import Any

import msgspec

from kvflow.frames import (
    AgentState,
    Ages,
    Counters,
    EvictionRecord,
    Frame,
    Node,
    Pool,
    PrefetchRecord,
    PrefetchStatus,
    State,
    Traffic,
    WaitingCall,
    Why,
)

ROOT = 0
EPOCH_S = 1_700_000_000.0
NO_COUNTS: dict[str, Any] = {
    "tagged_calls": 0,
    "untagged_calls": 0,
    "unexpected_calls": 0,
    "unknown_agents": 0,
    "other_prompt": 0,
    "bad_hints": {},
    "evicted_device_tokens": 0,
    "evicted_host_tokens": 0,
    "not_backed_up_tokens": 0,
    "expired_runs": 0,
}
NO_TRAFFIC = dict.fromkeys((field.name for field in msgspec.structs.fields(Traffic)), 0)


def make_node(node_id: int, parent: int = ROOT, **known: Any) -> Node:
    ordinary: dict[str, Any] = {
        "tokens": 100,
        "depth": 0,
        "state": State.DEVICE,
        "steps": 4,
        "why": Why.UNTAGGED,
        "agents": (),
        "locks": 0,
        "hits": 0,
        "last_access": float(node_id),
        "children": 0,
    }
    return Node(id=node_id, parent=parent, **(ordinary | known))


def make_frame(*nodes: Node, counters: dict[str, Any] | None = None, **known: Any) -> Frame:
    ordinary: dict[str, Any] = {
        "mode": "prefetch",
        "page_size": 1,
        "bytes_per_token": 1024,
        "untagged_steps": 4,
        "device": Pool(capacity=1000, free=400, evictable=500, locked=100),
        "host": Pool(capacity=2000, free=1000, evictable=1000, locked=0),
        "running": 1,
        "waiting": 0,
        "runs": 0,
        "nodes_left_out": False,
        "agents": (),
        "evictions": (),
        "seq": 1,
        "boot": "first",
        "time_s": EPOCH_S,
        "tree_nodes": len(nodes),
    }
    return Frame(
        nodes=nodes, counters=Counters(**(NO_COUNTS | (counters or {}))), **(ordinary | known)
    )


def make_agent(name: str, steps: int | None = 1, **known: Any) -> AgentState:
    client, _, agent = name.rpartition("/")
    ordinary: dict[str, Any] = {
        "runs": 1,
        "in_flight": 0,
        "prefix_tokens": 0,
        "device_tokens": 0,
        "host_tokens": 0,
    }
    return AgentState(client=client, agent=agent, steps=steps, **(ordinary | known))


def make_eviction(seq: int, **known: Any) -> EvictionRecord:
    ordinary: dict[str, Any] = {
        "tier": "device",
        "node": seq,
        "tokens": 100,
        "why": Why.SPENT,
        "steps": 4,
        "outcome": "dropped",
    }
    return EvictionRecord(seq=seq, **(ordinary | known))


def make_traffic(**known: int) -> Traffic:
    return Traffic(**(NO_TRAFFIC | known))


def make_nodes(count: int, seed: int = 1) -> list[Node]:
    """A random tree, parents first: bushy near the root, with a deep branch here and there."""
    chance = random.Random(seed)
    depths = {ROOT: 0}
    nodes = []
    for node_id in range(1, count + 1):
        near = chance.random() < 0.5
        parent = chance.randrange(min(node_id, 40)) if near else chance.randrange(node_id)
        tokens = chance.randint(1, 400)
        why = chance.choice(list(Why)[:3])
        agents = (f"app{chance.randrange(3)}/agent{chance.randrange(9)}",)
        nodes.append(
            make_node(
                node_id,
                parent,
                tokens=tokens,
                depth=depths[parent],
                state=chance.choice(list(State)),
                steps=chance.randrange(9) if why is Why.STEPS else 4,
                why=why,
                agents=agents if why is Why.STEPS and chance.random() < 0.2 else (),
                locks=int(chance.random() < 0.05),
                hits=chance.randrange(20),
                last_access=chance.random() * 1000,
            )
        )
        depths[node_id] = depths[parent] + tokens
    return nodes


def busy_frame(*nodes: Node, at: int = 0, **known: Any) -> Frame:
    """A frame with something of everything, as a server would tell it `at` seconds later."""
    agents = (
        make_agent("peer/planner", 3, prefix_tokens=320, host_tokens=320, runs=2, calls=6),
        make_agent("peer/executor", 0, in_flight=2, prefix_tokens=340, device_tokens=340, runs=2),
        make_agent("peer/expresser", 1, prefix_tokens=360, device_tokens=120, host_tokens=240),
        make_agent("peer/reviewer", 2, prefix_tokens=330, runs=2),
        make_agent("batch/summary", None, prefix_tokens=100, device_tokens=60),
    )
    ordinary: dict[str, Any] = {
        "agents": agents,
        "waiting": 1,
        "runs": 2,
        "seq": at + 1,
        "time_s": EPOCH_S + at,
        "counters": {
            "tagged_calls": 40 + 2 * at,
            "hit_device_tokens": 3000 + 300 * at,
            "hit_host_tokens": 1000 + 100 * at,
            "computed_tokens": 1000 + 100 * at,
            "evicted_device_tokens": 5000 + 250 * at,
            "evicted_host_tokens": 800,
            "prefetches": 9 + at,
            "prefetched_tokens": 2000 + 200 * at,
            "prefetched_used_tokens": 1800,
            "prefetched_late_tokens": 200,
            "prefetched_wasted_tokens": 100,
        },
        "traffic": make_traffic(
            h2d_bytes=10**9 * (1 + at), d2h_bytes=5 * 10**8 * (1 + at), h2d_operations=9, waits=3
        ),
        "evictions": (
            make_eviction(1, node=900, age_s=1.5),
            make_eviction(2, node=901, why=Why.STEPS, steps=9, outcome="demoted", regret=True),
        ),
        "prefetches": (
            PrefetchRecord(
                seq=1,
                node=3,
                agent="peer/expresser",
                steps=1,
                tokens=240,
                status=PrefetchStatus.LOADING,
            ),
        ),
        "waiting_calls": (
            WaitingCall(
                agent="peer/expresser",
                run="r7",
                prompt_tokens=512,
                device_tokens=120,
                host_tokens=240,
                deferred_passes=2,
            ),
        ),
        "ages": Ages(bounds_s=(1.0, 10.0), hit_tokens=(60, 30, 10), evicted_tokens=(0, 20, 80)),
    }
    return make_frame(*nodes, **(ordinary | known))


class ChangingServer:
    """A tree at random that changes from frame to frame, told as deltas after the first."""

    def __init__(self, nodes: int, seed: int = 1, changes: int = 500) -> None:
        self._chance = random.Random(seed)
        self._changes = changes
        self.nodes = {node.id: node for node in make_nodes(nodes, seed)}
        self._seq = 0

    def whole(self) -> Frame:
        self._seq += 1
        return busy_frame(*self.nodes.values(), at=self._seq - 1)

    def delta(self) -> Frame:
        """The next frame: changed nodes, leaves that left, and as many new ones."""
        before, self._seq = self._seq, self._seq + 1
        parents = {node.parent for node in self.nodes.values()}
        leaves = [node_id for node_id in self.nodes if node_id not in parents]
        gone = self._chance.sample(leaves, min(len(leaves), self._changes // 10))
        for node_id in gone:
            del self.nodes[node_id]
        changed = self._chance.sample(
            list(self.nodes), min(len(self.nodes), self._changes - len(gone))
        )
        nodes = [self._changed(self.nodes[node_id]) for node_id in changed]
        first = max(self.nodes, default=0) + 1 + len(gone)
        for new in range(first, first + len(gone)):
            parent = self._chance.choice(list(self.nodes)) if self.nodes else ROOT
            nodes.append(make_node(new, parent, tokens=self._chance.randint(1, 400)))
        self.nodes |= {node.id: node for node in nodes}
        return busy_frame(
            *nodes, at=self._seq - 1, delta_since=before, gone=tuple(gone), seq=self._seq
        )

    def _changed(self, node: Node) -> Node:
        return msgspec.structs.replace(
            node,
            state=self._chance.choice(list(State)),
            hits=node.hits + 1,
            last_access=node.last_access + 1000,
        )
