from array import array
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.engine.regrets import Regrets

HERE = (None, None)


class Key:
    """A key as a node of SGLang's tree has it."""

    def __init__(self, ids: list[int], extra: str | None, salt: str | None, pairs: bool) -> None:
        self._ids = array("q", ids)
        self.extra_key, self.cache_salt, self.is_bigram = extra, salt, pairs

    def __len__(self) -> int:
        return len(self._ids)

    def raw_token_ids(self) -> Any:
        return self._ids


class Tree:
    """Nodes with ids of their own."""

    def __init__(self) -> None:
        self.root: Any = SimpleNamespace(id=0, parent=None, key=None)
        self._nodes = 0

    def below(
        self,
        parent: Any,
        *ids: int,
        extra: str | None = None,
        salt: str | None = None,
        pairs: bool = False,
    ) -> Any:
        self._nodes += 1
        return SimpleNamespace(id=self._nodes, parent=parent, key=Key([*ids], extra, salt, pairs))


@pytest.fixture
def tree() -> Tree:
    return Tree()


def note(regrets: Regrets, seq: int, node: Any, tier: Any = "device") -> None:
    regrets.evicted(seq, tier, regrets.path(node))


def test_prompt_that_goes_on_where_the_evicted_path_ends_regrets_it(tree):
    regrets = Regrets(8)
    note(regrets, 1, tree.below(tree.below(tree.root, 1, 2), 3, 4))
    assert regrets.asked([1, 2, 3, 4, 5], HERE, 0, 0) == [1]


def test_prompt_that_ends_with_the_evicted_path_regrets_it(tree):
    regrets = Regrets(8)
    note(regrets, 1, tree.below(tree.root, 1, 2, 3))
    assert regrets.asked([1, 2, 3], HERE, 0, 0) == [1]


@pytest.mark.parametrize("prompt", [[1, 2], [9, 2, 3], [1, 2, 9], [2, 3], []])
def test_other_prompt_does_not_regret_it(tree, prompt):
    regrets = Regrets(8)
    note(regrets, 1, tree.below(tree.root, 1, 2, 3))
    assert regrets.asked(prompt, HERE, 0, 0) == []


def test_path_that_ends_alike_and_begins_otherwise_is_not_regretted(tree):
    regrets = Regrets(8)
    same_end = list(range(100, 120))
    note(regrets, 1, tree.below(tree.below(tree.root, 1), *same_end))
    assert regrets.asked([2, *same_end], HERE, 0, 0) == []


def test_regret_comes_once(tree):
    regrets = Regrets(8)
    note(regrets, 1, tree.below(tree.root, 1, 2, 3))
    assert regrets.asked([1, 2, 3], HERE, 0, 0) == [1]
    assert regrets.asked([1, 2, 3], HERE, 0, 0) == []


def test_what_is_back_on_the_device_is_not_regretted(tree):
    regrets = Regrets(8)
    note(regrets, 1, tree.below(tree.root, 1, 2, 3))
    assert regrets.asked([1, 2, 3, 4], HERE, device=3, cached=3) == []


def test_what_is_on_the_host_is_regretted_for_the_device_alone(tree):
    regrets = Regrets(8)
    node = tree.below(tree.root, 1, 2, 3)
    note(regrets, 1, node, "device")
    note(regrets, 2, node, "host")
    assert regrets.asked([1, 2, 3, 4], HERE, device=0, cached=3) == [1]
    assert regrets.asked([1, 2, 3, 4], HERE, device=0, cached=0) == [2]


@pytest.mark.parametrize("namespace", [("lora", None), (None, "salt"), (None, "lora")])
def test_namespaces_do_not_regret_each_others_evictions(tree, namespace):
    regrets = Regrets(8)
    note(regrets, 1, tree.below(tree.root, 1, 2, 3))
    note(regrets, 2, tree.below(tree.root, 1, 2, 3, extra="lora", salt="salt"))
    assert regrets.asked([1, 2, 3], namespace, 0, 0) == []
    assert regrets.asked([1, 2, 3], ("lora", "salt"), 0, 0) == [2]


def test_only_the_latest_are_remembered(tree):
    regrets = Regrets(2)
    for seq in range(1, 5):
        note(regrets, seq, tree.below(tree.root, seq))
    assert [regrets.asked([seq], HERE, 0, 0) for seq in range(1, 5)] == [[], [], [3], [4]]


def test_path_that_is_evicted_again_regrets_the_last_eviction(tree):
    regrets = Regrets(2)
    node = tree.below(tree.root, 1, 2)
    for seq in range(1, 6):
        note(regrets, seq, node)
    assert regrets.asked([1, 2], HERE, 0, 0) == [5]


def test_pairs_of_tokens_are_not_watched(tree):
    assert Regrets(2).path(tree.below(tree.root, 1, 2, pairs=True)) is None


def test_memory_is_bounded_by_what_is_watched_and_by_the_tree(tree):
    regrets = Regrets(4)
    for seq in range(1000):
        above = tree.below(tree.root, seq)
        note(regrets, seq, tree.below(above, seq + 1))
        regrets.asked([seq, seq + 1], HERE, 0, 0)
        regrets.removed(above.id)
    assert not regrets._states
    assert max(map(len, (regrets._latest, regrets._seqs, regrets._tails))) <= 4


WORDS = st.lists(st.integers(0, 1), min_size=1, max_size=12)


@calm
@given(
    evicted=st.lists(st.tuples(WORDS, st.integers(1, 11)), max_size=12),
    prompt=st.lists(st.integers(0, 1), max_size=16),
    device=st.integers(0, 8),
)
def test_regretted_are_just_the_watched_paths_that_the_prompt_begins_with(evicted, prompt, device):
    regrets, tree = Regrets(64), Tree()
    expected = {}
    for seq, (ids, cut) in enumerate(evicted):
        node = tree.root
        for part in filter(None, (ids[:cut], ids[cut:])):
            node = tree.below(node, *part)
        note(regrets, seq, node)
        if device < len(ids) and prompt[: len(ids)] == ids:
            expected[tuple(ids)] = seq
    assert sorted(regrets.asked(prompt, HERE, device, device)) == sorted(expected.values())
