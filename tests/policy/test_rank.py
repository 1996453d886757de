"""Ranks against a tree that is searched from scratch each time."""

import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from kvflow.policy.rank import KEPT, SPENT, Rank, Ranks, StepCounts

UNTAGGED = 4
MARKS = ["planner", "executor", "expresser", "reviewer", "stranger"]
marks = st.sampled_from(MARKS)
steps = st.integers(0, 64)


class Tree:
    """Parent links, and marks and spent nodes as plain facts."""

    def __init__(self) -> None:
        self.above: dict[int, int | None] = {}
        self.marks: dict[str, tuple[int, int]] = {}
        self.spent: set[int] = set()
        self.asked = 0

    def parent(self, node: int) -> int | None:
        self.asked += 1
        return self.above[node]

    def path(self, node: int | None) -> Iterator[int]:
        while node is not None:
            yield node
            node = self.above[node]

    def rank(self, node: int) -> Rank:
        through = [steps for end, steps in self.marks.values() if node in self.path(end)]
        kept = through or node not in self.spent
        return KEPT if kept else SPENT, -min(through, default=UNTAGGED), 0.0, node

    def ranks(self) -> dict[int, Rank]:
        return {node: self.rank(node) for node in self.above}


class AgainstSearch(RuleBasedStateMachine):
    """Everything that happens to nodes and marks, in any order."""

    nodes = Bundle("nodes")

    def __init__(self) -> None:
        super().__init__()
        self.tree = Tree()
        self.ranks: Ranks[str] = Ranks(self.tree.parent, UNTAGGED)
        self.made = 0

    def alive(self, node: int) -> bool:
        return node in self.tree.above

    def expect_reported(self, before: dict[int, Rank], reported: list[int]) -> None:
        now = self.tree.ranks()
        assert {node for node in now if now[node] != before[node]} <= set(reported)
        assert len(reported) == len(set(reported))

    @rule(target=nodes)
    def insert_at_top(self) -> int:
        self.made += 1
        self.tree.above[self.made] = None
        return self.made

    @rule(target=nodes, parent=nodes)
    def insert(self, parent: int) -> int:
        self.made += 1
        self.tree.above[self.made] = parent if self.alive(parent) else None
        return self.made

    @rule(target=nodes, child=nodes)
    def split(self, child: int) -> object:
        if not self.alive(child):
            return multiple()
        self.made += 1
        above = self.tree.above
        above[self.made], above[child] = above[child], self.made
        if child in self.tree.spent:
            self.tree.spent.add(self.made)
        self.ranks.split(self.made, child)
        return self.made

    @rule(node=consumes(nodes))
    def remove(self, node: int) -> None:
        if not self.alive(node) or node in self.tree.above.values():
            return
        parent = self.tree.above.pop(node)
        self.tree.spent.discard(node)
        for mark, (end, steps) in list(self.tree.marks.items()):
            if end == node and parent is None:
                del self.tree.marks[mark]
            elif end == node and parent is not None:
                self.tree.marks[mark] = (parent, steps)
        self.ranks.removed(node, parent)

    @rule(mark=marks, node=nodes, steps=steps)
    def place(self, mark: str, node: int, steps: int) -> None:
        if self.alive(node):
            before = self.tree.ranks()
            self.tree.marks[mark] = (node, steps)
            self.expect_reported(before, self.ranks.place(mark, node, steps))

    @rule(mark=marks, steps=steps)
    def set_steps(self, mark: str, steps: int) -> None:
        before = self.tree.ranks()
        if mark in self.tree.marks:
            self.tree.marks[mark] = (self.tree.marks[mark][0], steps)
        self.expect_reported(before, self.ranks.set_steps(mark, steps))

    @rule(mark=marks)
    def lift(self, mark: str) -> None:
        before = self.tree.ranks()
        self.tree.marks.pop(mark, None)
        self.expect_reported(before, self.ranks.lift(mark))

    @rule(node=nodes)
    def spend(self, node: int) -> None:
        if self.alive(node):
            before = self.tree.rank(node)
            self.tree.spent.add(node)
            assert self.ranks.spend(node) == (self.tree.rank(node) != before)

    @rule(node=nodes)
    def hit(self, node: int) -> None:
        if self.alive(node):
            before = self.tree.rank(node)
            self.tree.spent.discard(node)
            assert self.ranks.hit(node) == (self.tree.rank(node) != before)

    @invariant()
    def ranks_are_those_of_a_search(self) -> None:
        for node, rank in self.tree.ranks().items():
            assert self.ranks.rank(node, 0.0) == rank
            assert self.ranks.steps(node) == -rank[1]
        for mark in MARKS:
            at = self.tree.marks.get(mark)
            assert self.ranks.end(mark) == (None if at is None else at[0])


def test_ranks_random_histories_equal_a_search() -> None:
    run_state_machine_as_test(
        AgainstSearch, settings=settings(max_examples=60, stateful_step_count=40)
    )


@pytest.fixture
def tree() -> Tree:
    """1 at the top, 2 and 3 below it, 4 below 2."""
    tree = Tree()
    tree.above = {1: None, 2: 1, 3: 1, 4: 2}
    return tree


@pytest.fixture
def ranks(tree: Tree) -> Ranks[str]:
    return Ranks(tree.parent, UNTAGGED)


def order(ranks: Ranks[str], ages: dict[int, float]) -> list[int]:
    return sorted(ages, key=lambda node: ranks.rank(node, ages[node]))


def test_rank_spent_goes_before_far_before_near_before_its_own_age(ranks: Ranks[str]) -> None:
    ranks.spend(4)
    ranks.place("far", 3, 9)
    ranks.place("near", 2, 1)
    assert order(ranks, {2: 0.0, 3: 5.0, 4: 9.0}) == [4, 3, 2]


def test_rank_equal_steps_least_recently_used_goes_first(ranks: Ranks[str]) -> None:
    ranks.place("a", 2, 3)
    ranks.place("b", 3, 3)
    assert order(ranks, {2: 7.0, 3: 6.0}) == [3, 2]


def test_rank_equal_in_all_lower_id_goes_first(ranks: Ranks[str]) -> None:
    assert order(ranks, {4: 1.0, 3: 1.0, 2: 1.0}) == [2, 3, 4]


def test_rank_untagged_goes_between_far_and_near(ranks: Ranks[str]) -> None:
    ranks.place("far", 3, UNTAGGED + 1)
    ranks.place("near", 2, UNTAGGED - 1)
    assert order(ranks, {2: 0.0, 3: 0.0, 4: 0.0}) == [3, 4, 2]


def test_steps_shared_node_has_the_least_of_its_users(ranks: Ranks[str]) -> None:
    ranks.place("near", 2, 2)
    ranks.place("far", 3, 7)
    assert [ranks.steps(node) for node in (1, 2, 3)] == [2, 2, 7]


def test_set_steps_growing_raises_the_shared_node_to_the_next_user(ranks: Ranks[str]) -> None:
    ranks.place("leaver", 2, 0)
    ranks.place("other", 3, 5)
    assert ranks.set_steps("leaver", 9) == [2, 1]
    assert [ranks.steps(node) for node in (1, 2, 3)] == [5, 9, 5]


def test_lift_one_of_two_equal_users_leaves_the_other(ranks: Ranks[str]) -> None:
    ranks.place("one", 2, 3)
    ranks.place("two", 2, 3)
    assert ranks.lift("one") == []
    assert ranks.steps(2) == 3


def test_lift_restores_what_was_without_the_mark(tree: Tree, ranks: Ranks[str]) -> None:
    ranks.place("stays", 2, 6)
    ranks.spend(3)
    before = [ranks.rank(node, 0.0) for node in tree.above]
    ranks.place("passes", 4, 1)
    ranks.place("passes", 3, 2)
    ranks.set_steps("passes", 8)
    ranks.lift("passes")
    assert [ranks.rank(node, 0.0) for node in tree.above] == before


def test_spend_on_a_marked_path_changes_nothing_until_the_mark_goes(ranks: Ranks[str]) -> None:
    ranks.place("far", 4, 60)
    assert not ranks.spend(2)
    assert ranks.rank(2, 0.0)[0] == KEPT
    ranks.lift("far")
    assert ranks.rank(2, 0.0)[0] == SPENT


def test_hit_clears_spent(ranks: Ranks[str]) -> None:
    ranks.spend(4)
    assert ranks.hit(4)
    assert ranks.rank(4, 0.0)[0] == KEPT


def test_split_spent_tail_hit_on_its_prefix_leaves_the_rest_spent(
    tree: Tree, ranks: Ranks[str]
) -> None:
    ranks.spend(4)
    tree.above[5], tree.above[4] = 2, 5
    ranks.split(5, 4)
    ranks.hit(5)
    assert (ranks.rank(5, 0.0)[0], ranks.rank(4, 0.0)[0]) == (KEPT, SPENT)


def test_removed_end_of_a_prefix_leaves_the_mark_on_what_is_left(
    tree: Tree, ranks: Ranks[str]
) -> None:
    ranks.place("a", 4, 1)
    del tree.above[4]
    ranks.removed(4, 2)
    assert ranks.end("a") == 2
    assert ranks.set_steps("a", 6) == [2, 1]


def test_set_steps_prefix_that_left_the_tree_is_passed_over(tree: Tree, ranks: Ranks[str]) -> None:
    ranks.place("a", 3, 1)
    ranks.removed(3, None)
    assert ranks.set_steps("a", 2) == []
    assert ranks.end("a") is None


def test_set_steps_asks_for_one_path_only(tree: Tree, ranks: Ranks[str]) -> None:
    for node in range(5, 1000):
        tree.above[node] = 1
        ranks.place(f"agent {node}", node, node % 60)
    ranks.place("a", 4, 1)
    tree.asked = 0
    ranks.set_steps("a", 2)
    assert tree.asked <= 2 * len([*tree.path(4)])


def test_ranks_memory_is_bounded_by_what_lives(tree: Tree, ranks: Ranks[str]) -> None:
    def lives(first: int, count: int) -> None:
        for node in range(first, first + count):
            tree.above[node] = 4
            ranks.place(f"agent {node}", node, node % 64)
            ranks.set_steps(f"agent {node}", (node + 1) % 64)
            ranks.spend(node)
            del tree.above[node]
            ranks.removed(node, 4)
            ranks.lift(f"agent {node}")

    lives(10, 5_000)  # Python keeps up to 2,000 tuples for later use: not ours to count
    tracemalloc.start()
    lives(10_000, 5_000)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 10_000


def test_step_counts_drop_of_what_was_never_added_raises() -> None:
    counts = StepCounts()
    counts.add(3)
    with pytest.raises(KeyError):
        counts.drop(2)


def test_step_counts_copy_goes_its_own_way() -> None:
    counts = StepCounts()
    counts.add(3)
    twin = counts.copy()
    twin.add(1)
    assert (counts.least, twin.least) == (3, 1)
