"""The eviction order against a full sort, and against a heap that is rebuilt at each eviction."""

import heapq
import random
import tracemalloc
from dataclasses import dataclass, field
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from kvflow.order import EvictionOrder
from kvflow.policy.rank import KEPT, SPENT, Rank, Ranks

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


Ages = dict[int, float]


def by_age(ages: Ages) -> EvictionOrder[int]:
    order: EvictionOrder[int] = EvictionOrder(lambda leaf: (KEPT, 0, ages[leaf], leaf))
    for leaf in ages:
        order.add(leaf)
    return order


@given(st.permutations(range(12)))
def test_order_same_time_lower_id_goes_first_however_it_came(leaves: list[int]) -> None:
    order = by_age(dict.fromkeys(leaves, 1.0))
    assert [order.pop() for _ in leaves] == sorted(leaves)


def test_peek_touched_without_notice_comes_up_at_its_new_time() -> None:
    ages = {1: 1.0, 2: 2.0, 3: 3.0}
    order = by_age(ages)
    ages[1] = 2.5
    assert [order.pop() for _ in range(3)] == [2, 1, 3]


@pytest.mark.parametrize(("to", "expected"), [(0.5, [3, 1, 2]), (9.0, [1, 2, 3])])
def test_reranked_moves_a_leaf_both_ways(to: float, expected: list[int]) -> None:
    ages = {1: 1.0, 2: 2.0, 3: 3.0}
    order = by_age(ages)
    ages[3] = to
    order.reranked(3)
    assert [order.pop() for _ in range(3)] == expected


def test_reranked_of_what_is_no_leaf_does_nothing() -> None:
    order = by_age({1: 1.0})
    order.reranked(2)
    assert (len(order), 2 in order) == (1, False)


def test_add_twice_holds_one_entry() -> None:
    order = by_age({1: 1.0})
    order.add(1)
    assert (order.pop(), order.pop()) == (1, None)


def test_discard_of_what_is_no_leaf_does_nothing() -> None:
    order = by_age({1: 1.0})
    order.discard(2)
    assert order.peek() == 1


def test_peek_and_pop_empty_order_have_nothing() -> None:
    order = by_age({})
    assert (order.peek(), order.pop(), list(order.upcoming())) == (None, None, [])


def test_upcoming_takes_nothing_out() -> None:
    order = by_age({3: 3.0, 1: 1.0, 2: 2.0})
    assert list(order.upcoming()) == list(order.upcoming()) == [1, 2, 3]


def test_upcoming_uncovered_parent_joins_at_its_rank() -> None:
    ranks = {1: (SPENT, 0, 1.0, 1), 2: (KEPT, -9, 5.0, 2), 3: (KEPT, -1, 2.0, 3)}
    order: EvictionOrder[int] = EvictionOrder(ranks.__getitem__)
    order.add(1)
    order.add(3)
    assert list(order.upcoming({1: 2}.get)) == [1, 2, 3]


@pytest.mark.parametrize("event", ["add", "discard", "reranked"])
def test_upcoming_order_changes_meanwhile_raises(event: str) -> None:
    order = by_age({1: 1.0, 2: 2.0, 3: 3.0})
    order.discard(3)
    looking = order.upcoming()
    next(looking)
    getattr(order, event)(3 if event == "add" else 2)
    with pytest.raises(RuntimeError, match="changed while somebody looked ahead"):
        next(looking)


def test_upcoming_few_of_many_ranks_few() -> None:
    asked = 0

    def rank(leaf: int) -> Rank:
        nonlocal asked
        asked += 1
        return KEPT, 0, float(leaf), leaf

    order: EvictionOrder[int] = EvictionOrder(rank)
    for leaf in range(10_000):
        order.add(leaf)
    asked = 0
    list(islice(order.upcoming(), 10))
    assert asked <= 20


def test_evictions_never_rank_the_rest_anew() -> None:
    asked = 0

    def rank(leaf: int) -> Rank:
        nonlocal asked
        asked += 1
        return KEPT, 0, float(leaf), leaf

    order: EvictionOrder[int] = EvictionOrder(rank)
    for leaf in range(10_000):
        order.add(leaf)
    asked = 0
    for _ in range(100):
        order.pop()
    assert asked <= 200


def test_order_memory_is_bounded_by_live_leaves() -> None:
    ages = dict.fromkeys(range(100), 0.0)
    order = by_age(ages)

    def churn(first: int, events: int) -> None:
        for event in range(first, first + events):
            leaf = event % 100
            ages[leaf] = float(event if event % 3 else -event)
            order.reranked(leaf)
            order.discard(event % 7)
            order.add(event % 7)
            ages[(event * 31) % 100] += 1.0

    churn(0, 1_000)
    tracemalloc.start()
    churn(1_000, 100_000)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 50_000
    assert len(order) == 100
