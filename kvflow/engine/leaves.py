"""Feeding the eviction orders: the sets of leaves that SGLang keeps, with an ear on them."""

from typing import Any

from kvflow.order import EvictionOrder, ReservedOrder


class LeafSet(set[Any]):
    """A set of nodes that tells an order what comes and goes.

    SGLang's tree core keeps the evictable leaves of each tier in a plain set and sorts it at every
    eviction. It changes them through `add` and `discard` only (checked by the tests against its
    own sanity check), which is where the order hears of it.
    """

    def __init__(self, order: EvictionOrder[Any] | ReservedOrder[Any]) -> None:
        super().__init__()
        self._order = order

    def add(self, node: Any) -> None:
        """A node became a leaf; nothing happens if it is one."""
        # Only news: in the middle of a walk a victim is out of the order and still in the set.
        if node not in self:
            super().add(node)
            self._order.add(node)

    def discard(self, node: Any) -> None:
        """A node is no leaf any more; nothing happens if it is none."""
        if node in self:
            super().discard(node)
            self._order.discard(node)
