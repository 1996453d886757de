"""The share of the device pool that untagged traffic keeps while it is in use.

Workflows rank their prefixes nearer than anything untagged, so beside a busy
workflow plain traffic would never find its KV again. What is counted is what is resident and not
known of: neither on the path of a fixed prefix, nor spent, nor made by a tagged call in flight.
"""

from typing import Final

UNLIMITED: Final = 1 << 62
QUIET_TICKS: Final = 60
"""Seconds without an untagged call after which the share is no longer in use."""


class UntaggedShare:
    """How much untagged KV is on the device, and how much of it may go.

    Attributes:
        floor: tokens that are spared while they are in use; 0 for none.
        resident: untagged tokens on the device.
    """

    def __init__(self) -> None:
        self.floor = 0
        self.resident = 0
        self._by_node: dict[int, int] = {}
        self._quiet_for = QUIET_TICKS

    def call_arrived(self) -> None:
        """An untagged call is here."""
        self._quiet_for = 0

    def tick(self) -> None:
        """A second has passed, in every rank alike."""
        self._quiet_for = min(self._quiet_for + 1, QUIET_TICKS)

    def count(self, node: int, tokens: int) -> None:
        """So many tokens of a node are untagged and on the device; 0 if it is not, or is gone."""
        self.resident += tokens - self._by_node.pop(node, 0)
        if tokens:
            self._by_node[node] = tokens

    def forget_nodes(self) -> None:
        """The tree was emptied."""
        self._by_node.clear()
        self.resident = 0

    @property
    def spare(self) -> int:
        """Tokens of untagged KV that may be evicted while there is anything else to evict."""
        return self.resident - self.floor if self._quiet_for < QUIET_TICKS else UNLIMITED
