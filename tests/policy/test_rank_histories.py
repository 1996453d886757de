"""Ranks over random histories, against a tree that is searched from scratch each time."""

from collections.abc import Iterator

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

from kvflow.policy.rank import KEPT, SPENT, Rank, Ranks

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

    def parent(self, node: int) -> int | None:
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
