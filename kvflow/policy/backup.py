"""Which KV is written to the host: only what may be asked for again.

Source: design 4.3 (Backup). SGLang's write-through copies each new node; the tails of agents'
calls (their varying input and their answer) are read once and never again, and copying them costs
link time, host memory and compute.
"""

from enum import StrEnum
from typing import NamedTuple


class Action(StrEnum):
    """What to do with the host copy of a node."""

    BACK_UP = "back_up"
    SKIP = "skip"
    SPLIT = "split"  # at the boundary; then ask again for the part before it
    STOCK = "stock"  # as SGLang's own rule says


class Reason(StrEnum):
    """Why, in the words of frames and documents."""

    STORAGE = "storage"  # a storage backend is fed from the host tier: it has to see everything
    UNTAGGED = "untagged"  # nothing is known of the call
    UNKNOWN_PREFIX = "unknown_prefix"  # tagged, but where its fixed prefix ends is not known yet
    FIXED = "fixed"  # the agent will ask for it again
    HIT = "hit"  # beyond the fixed prefix, but somebody asked for it again
    STRADDLES = "straddles"  # fixed prefix and tail in one node
    TAIL = "tail"  # beyond the fixed prefix, nobody asked for it again


class Decision(NamedTuple):
    """What to do, and why."""

    action: Action
    reason: Reason


def decide(
    start: int, end: int, *, tagged: bool, boundary: int | None, hit: bool, storage: bool
) -> Decision:
    """Decide on the host copy of a node that an insert created or passed.

    Args:
        start: tokens before the node, from the root.
        end: tokens up to the node's end; more than `start`.
        tagged: whether the call that inserts it carries a usable tag.
        boundary: tokens of the call that will be asked for again, rounded down to pages: its
            agent's fixed prefix (0 if it has none), or the whole sequence of an agent whose next
            call extends this one. None while that is not known.
        hit: whether another call than the one that created the node has matched it.
        storage: whether a storage backend (L3) is attached.
    """
    if storage:
        return Decision(Action.STOCK, Reason.STORAGE)
    if not tagged:
        return Decision(Action.STOCK, Reason.UNTAGGED)
    if boundary is None:
        return Decision(Action.STOCK, Reason.UNKNOWN_PREFIX)
    if end <= boundary:
        return Decision(Action.BACK_UP, Reason.FIXED)
    if hit:
        return Decision(Action.BACK_UP, Reason.HIT)
    if start < boundary:
        return Decision(Action.SPLIT, Reason.STRADDLES)
    return Decision(Action.SKIP, Reason.TAIL)
