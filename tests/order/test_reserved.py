"""The order with a share that is spared, against a sort of everything at every step."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.order import ReservedOrder
from kvflow.policy.rank import KEPT, Rank


@dataclass
class Forest:
    """Nodes by number, each with a parent of a lower number or none; a leaf is a node whose
    children are gone.
    """

    parents: list[int | None]
    ages: list[int]
    reserved: list[bool]
    sizes: list[int]
    floor: int
    gone: set[int] = field(default_factory=set)

    def rank(self, node: int) -> Rank:
        return KEPT, 0, self.ages[node], node

    def is_leaf(self, node: int, gone: set[int]) -> bool:
        children = (n for n, parent in enumerate(self.parents) if parent == node)
        return node not in gone and all(child in gone for child in children)

    def leaves(self, gone: set[int]) -> list[int]:
        return [node for node in range(len(self.parents)) if self.is_leaf(node, gone)]

    def spare(self) -> int:
        left = set(range(len(self.parents))) - self.gone
        return sum(self.sizes[node] for node in left if self.reserved[node]) - self.floor

    def bared_by(self, gone: set[int]) -> Callable[[int], int | None]:
        def bared(leaf: int) -> int | None:
            gone.add(leaf)
            parent = self.parents[leaf]
            return parent if parent is not None and self.is_leaf(parent, gone) else None

        return bared

    def order(self) -> ReservedOrder[int]:
        order = ReservedOrder(
            self.rank, self.reserved.__getitem__, self.sizes.__getitem__, self.spare
        )
        for leaf in self.leaves(self.gone):
            order.add(leaf)
        return order

    def first(self) -> int:
        """The next victim, by looking at all leaves."""
        leaves = self.leaves(self.gone)
        if self.spare() <= 0:
            leaves = [leaf for leaf in leaves if not self.reserved[leaf]] or leaves
        return min(leaves, key=self.rank)


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    size = draw(st.integers(1, 12))

    def each(values: st.SearchStrategy[int]) -> list[int]:
        return draw(st.lists(values, min_size=size, max_size=size))

    parents = [draw(st.none() | st.integers(0, n - 1)) if n else None for n in range(size)]
    reserved = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    ages, sizes = each(st.integers(0, 20)), each(st.integers(1, 5))
    return Forest(parents, ages, reserved, sizes, draw(st.integers(0, 25)))


@calm
@given(forest=forests())
def test_pop_takes_what_a_sort_puts_first_to_the_last_leaf(forest: Forest) -> None:
    order = forest.order()
    while len(order):
        expected = forest.first()
        assert order.pop() == expected
        forest.gone.add(expected)
        for leaf in forest.leaves(forest.gone):
            order.add(leaf)
    assert len(forest.gone) == len(forest.parents)


@calm
@given(forest=forests())
def test_upcoming_is_what_pops_will_take_up_to_what_is_spared(forest: Forest) -> None:
    foreseen = list(forest.order().upcoming(forest.bared_by(set())))
    for leaf in foreseen:
        assert forest.first() == leaf
        forest.gone.add(leaf)
    left = forest.leaves(forest.gone)
    assert all(forest.reserved[leaf] for leaf in left)
    assert not left or forest.spare() <= 0


@calm
@given(forest=forests(), data=st.data())
def test_reranked_leaf_that_became_reserved_or_no_more_changes_sides(
    forest: Forest, data: st.DataObject
) -> None:
    order = forest.order()
    leaf = data.draw(st.sampled_from(forest.leaves(set())))
    forest.reserved[leaf] = not forest.reserved[leaf]
    order.reranked(leaf)
    assert order.pop() == forest.first()


def test_leaf_is_held_once_and_gone_when_discarded() -> None:
    order = Forest([None], [1], [True], [1], 0).order()
    order.add(0)
    assert (len(order), 0 in order) == (1, True)
    order.discard(0)
    assert (len(order), 0 in order, order.peek(), order.pop()) == (0, False, None, None)


def test_reranked_of_what_is_no_leaf_does_nothing() -> None:
    order = Forest([None, 0], [1, 2], [False, False], [1, 1], 0).order()
    order.reranked(0)
    assert len(order) == 1
