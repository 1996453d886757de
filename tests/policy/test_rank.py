"""Ranks, one behaviour at a time. Random histories: test_rank_histories.py."""

import tracemalloc

import pytest

from kvflow.policy.rank import IDLE, KEPT, SPENT, Ranks, StepCounts

UNTAGGED = 4


class Tree:
    """1 at the top, 2 and 3 below it, 4 below 2; and how often somebody asked what is above."""

    def __init__(self) -> None:
        self.above: dict[int, int | None] = {1: None, 2: 1, 3: 1, 4: 2}
        self.asked = 0

    def parent(self, node: int) -> int | None:
        self.asked += 1
        return self.above[node]


@pytest.fixture
def tree() -> Tree:
    return Tree()


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
    assert tree.asked <= 2 * len([4, 2, 1])


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


def test_idle_mark_counts_where_no_other_mark_does() -> None:
    ranks: Ranks[str] = Ranks({2: 1, 3: 1, 1: None}.get, untagged_steps=4)
    ranks.place("idle", 2, IDLE)
    assert (ranks.steps(1), ranks.steps(2)) == (4, 4)
    ranks.place("late", 3, 9)
    assert (ranks.steps(1), ranks.steps(2)) == (9, 4)
    ranks.lift("late")
    assert ranks.rank(1, 0.0)[1] == -4
