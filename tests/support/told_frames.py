"""Frames in tests, with what matters to them and nothing else."""

from typing import Any

from kvflow.frames import Counters, Frame, Node, Pool, State, Why


def node(node_id: int, **fields: Any) -> Node:
    """A node below the root."""
    known: dict[str, Any] = {
        "parent": 0,
        "tokens": 8,
        "depth": 0,
        "state": State.DEVICE,
        "steps": 4,
        "why": Why.UNTAGGED,
        "agents": (),
        "locks": 0,
        "hits": 0,
        "last_access": 1.0,
        "children": 0,
    }
    return Node(id=node_id, **(known | fields))


def frame(seq: int, **fields: Any) -> Frame:
    """A frame of a quiet server."""
    pool = Pool(capacity=100, free=100, evictable=0, locked=0)
    counters = Counters(
        tagged_calls=0,
        untagged_calls=0,
        unexpected_calls=0,
        unknown_agents=0,
        other_prompt=0,
        bad_hints={},
        evicted_device_tokens=0,
        evicted_host_tokens=0,
        not_backed_up_tokens=0,
        expired_runs=0,
    )
    known: dict[str, Any] = {
        "mode": "prefetch",
        "page_size": 1,
        "bytes_per_token": 4,
        "untagged_steps": 4,
        "device": pool,
        "host": None,
        "running": 0,
        "waiting": 0,
        "runs": 0,
        "nodes": (),
        "nodes_left_out": False,
        "agents": (),
        "evictions": (),
        "counters": counters,
    }
    return Frame(seq=seq, **(known | fields))
