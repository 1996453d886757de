"""The eviction order over random histories of a tier: against a full sort, and a rebuilt heap."""

import heapq
import random
from dataclasses import dataclass, field
from itertools import islice

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from kvflow.order import EvictionOrder
from kvflow.policy.rank import Rank, Ranks

UNTAGGED = 4
picks = st.integers(0, 10_000)
steps = st.integers(0, 64)
marks = st.sampled_from(["planner", "executor", "expresser", "reviewer"])


@dataclass(eq=False)
class Node:
    """A node as SGLang's: hashed by identity, touched by writing a later time into it."""

    id: int
    time: float
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)
    locked: bool = False

    def __lt__(self, other: "Node") -> bool:
        return self.time < other.time


class Tree:
    """A device tier: its nodes, and the events that an engine would send for them."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.root = Node(0, 0.0)
        self.nodes: dict[int, Node] = {}
        self.made = 0
        self.ranks: Ranks[str] = Ranks(self.parent_id, UNTAGGED)
        self.order: EvictionOrder[Node] = EvictionOrder(self.rank)

    def parent_id(self, node: int) -> int | None:
        above = self.nodes[node].parent
        return None if above is None or above is self.root else above.id

    def rank(self, node: Node) -> Rank:
        return self.ranks.rank(node.id, node.time)

    def tick(self) -> float:
        self.clock += 1.0
        return self.clock

    def new(self, parent: Node, children: list[Node]) -> Node:
        self.made += 1
        node = Node(self.made, self.tick(), parent, children)
        self.nodes[node.id] = node
        return node

    def is_leaf(self, node: Node) -> bool:
        return node is not self.root and not node.children and not node.locked

    def leaves(self) -> list[Node]:
        return [node for node in self.nodes.values() if self.is_leaf(node)]

    def update(self, node: Node) -> None:
        if self.is_leaf(node):
            self.order.add(node)
        else:
            self.order.discard(node)

    def reranked(self, ids: list[int]) -> None:
        for node in ids:
            self.order.reranked(self.nodes[node])

    def insert(self, parent: Node) -> Node:
        node = self.new(parent, [])
        parent.children.append(node)
        self.update(node)
        self.update(parent)
        return node

    def split(self, child: Node) -> None:
        assert child.parent is not None
        upper = self.new(child.parent, [child])
        upper.locked = child.locked
        upper.parent.children[upper.parent.children.index(child)] = upper  # type: ignore[union-attr]
        child.parent, child.time = upper, self.tick()
        self.ranks.split(upper.id, child.id)
        self.update(upper)
        self.update(child)

    def touch(self, node: Node) -> None:
        """A match: no event, only later times on the path, the deepest the latest."""
        now, at = self.tick(), node
        while at.parent is not None:
            at.time, now, at = now, now - 0.00001, at.parent

    def evict(self, node: Node) -> None:
        parent = node.parent
        assert self.is_leaf(node)
        assert parent is not None
        above = self.parent_id(node.id)
        parent.children.remove(node)
        del self.nodes[node.id]
        self.ranks.removed(node.id, above)
        self.order.discard(node)
        self.update(parent)

    def rebuilt_heap_victims(self, count: int) -> list[Node]:
        """What a walk would take that builds its heap anew, as SGLang's does."""
        heap = [(self.rank(node), node) for node in self.leaves()]
        heapq.heapify(heap)
        gone: list[Node] = []
        while heap and len(gone) < count:
            _, node = heapq.heappop(heap)
            gone.append(node)
            bared = self.uncovered(node, gone)
            if bared is not None:
                heapq.heappush(heap, (self.rank(bared), bared))
        return gone

    def uncovered(self, node: Node, gone: list[Node]) -> Node | None:
        above = node.parent
        if above is None or above is self.root or above.locked:
            return None
        return above if all(child in gone for child in above.children) else None


class AgainstFullSort(RuleBasedStateMachine):
    """All that happens to a tier, with steps that go both ways and touches that nobody reports."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = Tree()

    @initialize(count=st.integers(1, 12))
    def fill(self, count: int) -> None:
        for _ in range(count):
            self.tree.insert(self.tree.root)

    def pick(self, number: int) -> Node:
        nodes = list(self.tree.nodes.values())
        return nodes[number % len(nodes)] if nodes else self.tree.insert(self.tree.root)

    @rule(at=picks)
    def insert_at_top(self, at: int) -> None:
        self.tree.insert(self.tree.root)

    @rule(at=picks)
    def insert(self, at: int) -> None:
        self.tree.insert(self.pick(at))

    @rule(at=picks)
    def split(self, at: int) -> None:
        self.tree.split(self.pick(at))

    @rule(at=picks)
    def touch(self, at: int) -> None:
        self.tree.touch(self.pick(at))

    @rule(at=picks)
    def lock_or_unlock(self, at: int) -> None:
        node = self.pick(at)
        node.locked = not node.locked
        self.tree.update(node)

    @rule(mark=marks, at=picks, steps=steps)
    def place(self, mark: str, at: int, steps: int) -> None:
        node = self.pick(at)
        self.tree.reranked(self.tree.ranks.place(mark, node.id, steps))

    @rule(mark=marks, steps=steps)
    def set_steps(self, mark: str, steps: int) -> None:
        self.tree.reranked(self.tree.ranks.set_steps(mark, steps))

    @rule(mark=marks)
    def lift(self, mark: str) -> None:
        self.tree.reranked(self.tree.ranks.lift(mark))

    @rule(at=picks)
    def spend(self, at: int) -> None:
        node = self.pick(at)
        self.tree.ranks.spend(node.id)
        self.tree.order.reranked(node)

    @rule(at=picks)
    def hit(self, at: int) -> None:
        node = self.pick(at)
        self.tree.ranks.hit(node.id)
        self.tree.order.reranked(node)

    @rule(count=st.integers(1, 4))
    def evict(self, count: int) -> None:
        expected = self.tree.rebuilt_heap_victims(count)
        gone: list[Node] = []
        while len(gone) < count and (node := self.tree.order.pop()) is not None:
            self.tree.evict(node)
            gone.append(node)
        assert gone == expected

    @rule()
    def evict_one_that_stays(self) -> None:
        node = self.tree.order.pop()
        if node is not None:
            assert node not in self.tree.order
            self.tree.order.add(node)

    @rule(count=st.integers(1, 6))
    def look_ahead(self, count: int) -> None:
        gone: list[Node] = []

        def uncovered(node: Node) -> Node | None:
            gone.append(node)
            return self.tree.uncovered(node, gone)

        seen = list(islice(self.tree.order.upcoming(uncovered), count))
        assert seen == self.tree.rebuilt_heap_victims(count)

    @invariant()
    def order_is_that_of_a_full_sort(self) -> None:
        tree = self.tree
        assert list(tree.order.upcoming()) == sorted(tree.leaves(), key=tree.rank)

    @invariant()
    def holds_the_leaves_and_nothing_else(self) -> None:
        leaves = self.tree.leaves()
        assert len(self.tree.order) == len(leaves)
        assert all(leaf in self.tree.order for leaf in leaves)


def test_order_random_histories_equal_a_full_sort() -> None:
    run_machine(AgainstFullSort, settings=settings(max_examples=80, stateful_step_count=50))


def test_order_without_hints_victims_are_those_of_lru() -> None:
    tree, rng = Tree(), random.Random(1)
    for _ in range(3_000):
        nodes = list(tree.nodes.values())
        some = rng.choice(nodes) if nodes else tree.root
        chance = rng.random()
        if chance < 0.5 or len(nodes) < 10:
            tree.insert(rng.choice([some, tree.root]))
        elif chance < 0.8:
            tree.touch(some)
        else:
            lru = min(tree.leaves(), key=lambda node: node.time)
            assert tree.order.peek() is lru
            tree.evict(lru)
