"""What would be evicted in which order if room were needed and nothing else happened.

Pure: the engine's rules, replayed on the tree that frames have told (kvflow/policy/rank.py: spent
first, then far first, then least recently used; only leaves go, and a node becomes one when all
below it are gone; paper Alg. 2).
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from kvflow.frames import Node, State, Why
from kvflow.tui.tree import Tree


class Tier(Enum):
    """Where room would be needed."""

    DEVICE = "device"
    HOST = "host"


_STATES = {
    Tier.DEVICE: frozenset({State.DEVICE, State.MIRRORED, State.OFFLOADING}),
    Tier.HOST: frozenset({State.HOST}),
}


class Turn(NamedTuple):
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

    Attributes:
        turns: by id of the node.
    """

    def __init__(self, tree: Tree, tier: Tier) -> None:
        self.turns: dict[int, Turn] = {}
        tokens = 0
        for place, node in enumerate(_evictions(tree, tier)):
            self.turns[node.id] = Turn(place, tokens)
            tokens += node.tokens


def tier_of(node: Node) -> Tier:
    """The tier that a node would leave first."""
    return Tier.HOST if node.state is State.HOST else Tier.DEVICE


def _evictions(tree: Tree, tier: Tier) -> Iterator[Node]:
    nodes = tree.nodes
    # By parent, how many children must go first. On the host that is all of them.
    children = Counter(
        node.parent for node in nodes.values() if tier is Tier.HOST or node.state is not State.HOST
    )
    states = _STATES[tier]
    ranks = {
        node.id: _rank(node) for node in nodes.values() if node.state in states and not node.locks
    }
    heap = [rank for node_id, rank in ranks.items() if node_id not in children]
    heapq.heapify(heap)
    while heap:
        node = nodes[heapq.heappop(heap)[-1]]
        yield node
        children[node.parent] -= 1
        if not children[node.parent] and node.parent in ranks:
            heapq.heappush(heap, ranks[node.parent])


def _rank(node: Node) -> tuple[int, int, float, int]:
    if node.why is Why.ACCESS:
        return 1, 0, node.last_access, node.id
    return (0 if node.why is Why.SPENT else 1), -node.steps, node.last_access, node.id
