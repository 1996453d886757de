"""Which KV is written to the host: only what may be asked for again.

SGLang's write-through copies each new node. But the tails of agents' calls, their varying input and
their answer, are read once and never again: copying them costs link time, host memory and compute,
and keeps their nodes locked when the next call needs the room.
"""


def may_be_asked_for(start: int, *, boundary: int | None, hit: bool, storage: bool) -> bool:
    """Whether a node that a tagged call has inserted or passed is worth a copy on the host.

    Args:
        start: tokens before the node, from the root.
        boundary: tokens of the call that will be asked for again, rounded down to pages: its
            agent's fixed prefix (0 if it has none), or the whole sequence of an agent whose next
            call extends this one. None while that is not known.
        hit: whether another call than the one that created the node has matched it.
        storage: whether a storage backend (L3) is attached, which is fed from the host tier and
            has to see everything.
    """
    return storage or hit or boundary is None or start < boundary
