"""What would be evicted in which order if room were needed and nothing else happened.

Pure: the engine's rules, replayed on the tree that frames have told (kvflow/policy/rank.py: spent
first, then far first, then least recently used; only leaves go, and a node becomes one when all
below it are gone; paper Alg. 2), with a share of untagged KV spared (kvflow/order/reserved.py).
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from kvflow.frames import Node, State, Why
from kvflow.tui.tree import Tree

_Rank = tuple[int, int, float, int]


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

    Args:
        tree: as frames have told it.
        tier: that room is needed in.
        spare: tokens of untagged KV that go from the device before the rest of it is spared, as
            long as anything else can go; None: nothing is spared.

    Attributes:
        turns: by id of the node.
    """

    def __init__(self, tree: Tree, tier: Tier, spare: int | None = None) -> None:
        self.turns: dict[int, Turn] = {}
        tokens = 0
        share = _Share(spare if tier is Tier.DEVICE else None)
        for place, node in enumerate(_evictions(tree, tier, share)):
            self.turns[node.id] = Turn(place, tokens)
            tokens += node.tokens


def tier_of(node: Node) -> Tier:
    """The tier that a node would leave first."""
    return Tier.HOST if node.state is State.HOST else Tier.DEVICE


class _Share:
    """Leaves that can go, in two heaps: those that may be spared, and all others."""

    def __init__(self, spare: int | None) -> None:
        self._spare = spare
        self._open: list[_Rank] = []
        self._reserved: list[_Rank] = []

    def add(self, node: Node) -> None:
        """A node can go."""
        reserved = self._spare is not None and node.why is Why.UNTAGGED
        heapq.heappush(self._reserved if reserved else self._open, _rank(node))

    def take(self, nodes: Mapping[int, Node]) -> Node | None:
        """The one that goes next."""
        if not self._reserved or (self._open and self._is_open_next()):
            return nodes[heapq.heappop(self._open)[-1]] if self._open else None
        node = nodes[heapq.heappop(self._reserved)[-1]]
        assert self._spare is not None
        self._spare -= node.tokens
        return node

    def _is_open_next(self) -> bool:
        return (self._spare or 0) <= 0 or self._open[0] < self._reserved[0]


def _evictions(tree: Tree, tier: Tier, share: _Share) -> Iterator[Node]:
    nodes = tree.nodes
    # By parent, how many children must go first. On the host that is all of them.
    children = Counter(
        node.parent for node in nodes.values() if tier is Tier.HOST or node.state is not State.HOST
    )
    states = _STATES[tier]
    idle = {node.id for node in nodes.values() if node.state in states and not node.locks}
    for one in idle:
        if one not in children:
            share.add(nodes[one])
    while (node := share.take(nodes)) is not None:
        yield node
        children[node.parent] -= 1
        if not children[node.parent] and node.parent in idle:
            share.add(nodes[node.parent])


def _rank(node: Node) -> _Rank:
    if node.why is Why.ACCESS:
        return 1, 0, node.last_access, node.id
    return (0 if node.why is Why.SPENT else 1), -node.steps, node.last_access, node.id
