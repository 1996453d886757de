"""What evictions from the device would take next, foreseen without evicting."""

from collections.abc import Iterator
from typing import Any

from kvflow.engine.tree import KvflowTreeCore
from kvflow.policy.prefetch import Victim


def victims(core: KvflowTreeCore) -> Iterator[Victim]:
    """The nodes that evictions would take, in order; found only as far as they are asked for."""
    gone: set[int] = set()

    def bared_by(leaf: Any) -> Any:
        gone.add(leaf.id)
        return _bared(core, leaf.parent, gone)

    for leaf in core.device_order.upcoming(bared_by):
        yield Victim(len(leaf.key), core.rank(leaf))


def _bared(core: KvflowTreeCore, node: Any, gone: set[int]) -> Any:
    """The node itself if it is a device leaf once those in `gone` have left; else None."""
    if node is core.root_node or node.evicted or node in core.evictable_device_leaves:
        return None
    if any(data.lock_ref > 0 for data in node.component_data):
        return None
    stay = any(not c.evicted and c.id not in gone for c in node.children.values())
    return None if stay else node
