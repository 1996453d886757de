"""What would be evicted in which order if room were needed and nothing else happened.

Pure: the engine's rules, replayed on the tree that frames have told (kvflow/policy/rank.py: spent
first, then far first, then least recently used; only leaves go, and a node becomes one when all
below it are gone; paper Alg. 2).
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from kvflow.frames import Node, State, Why
from kvflow.tui.store import on_device
from kvflow.tui.tree import Tree


class Tier(Enum):
    """Where room would be needed."""

    DEVICE = "device"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Turn:
    """When a node's turn comes.

    Attributes:
        nodes: that go before it.
        tokens: that these hold.
    """

    nodes: int
    tokens: int


class Forecast:
    """The order of evictions from one tier. O(nodes log nodes) to make.

    A node that is in use, or that is above one, has no turn: it cannot go as things stand.
    """

    def __init__(self, tree: Tree, tier: Tier) -> None:
        in_tier = on_device if tier is Tier.DEVICE else _on_host_alone
        self.turns: dict[int, Turn] = {}
        tokens = 0
        for node in _evictions(tree, in_tier, _blocks_device if tier is Tier.DEVICE else _is_node):
            self.turns[node.id] = Turn(len(self.turns), tokens)
            tokens += node.tokens


def tier_of(node: Node) -> Tier:
    """The tier that a node would leave first."""
    return Tier.HOST if _on_host_alone(node) else Tier.DEVICE


def _evictions(
    tree: Tree, in_tier: Callable[[Node], bool], blocks: Callable[[Node], bool]
) -> list[Node]:
    nodes = tree.nodes
    blocking: dict[int, int] = {}  # by parent: children that must go first
    for node in nodes.values():
        if blocks(node):
            blocking[node.parent] = blocking.get(node.parent, 0) + 1
    heap = [
        (*_rank(node), node)
        for node in nodes.values()
        if in_tier(node) and not node.locks and node.id not in blocking
    ]
    heapq.heapify(heap)
    order = []
    while heap:
        node = heapq.heappop(heap)[-1]
        order.append(node)
        left = blocking[node.parent] = blocking[node.parent] - 1
        above = nodes.get(node.parent)
        if not left and above is not None and in_tier(above) and not above.locks:
            heapq.heappush(heap, (*_rank(above), above))
    return order


def _rank(node: Node) -> tuple[int, int, float, int]:
    if node.why is Why.ACCESS:
        return 1, 0, node.last_access, node.id
    return int(node.why is not Why.SPENT), -node.steps, node.last_access, node.id


def _on_host_alone(node: Node) -> bool:
    return node.state is State.HOST


def _blocks_device(node: Node) -> bool:
    return node.state is not State.HOST


def _is_node(_node: Node) -> bool:
    """Host copies go from the end of the tree, whatever is below them."""
    return True
