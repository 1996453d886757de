from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.graphs import loaded_of

from kvflow.recipe.model import Recipe
from kvflow.workload import filler_ids, filler_text, fixed_ids

VOCABULARY = range(100, 400)


def recipe(name: str = "flow", **agents: dict[str, Any]) -> Recipe:
    return loaded_of({"name": name, "agents": agents}).recipe


@given(st.integers(0, 200), st.integers(0, 1000), st.integers(1, 1000), st.text(max_size=5))
def test_filler_ids_are_so_many_and_of_the_vocabulary(
    count: int, low: int, size: int, key: str
) -> None:
    vocabulary = range(low, low + size)
    ids = filler_ids(count, vocabulary, key)
    assert len(ids) == count
    assert all(one in vocabulary for one in ids)


@given(st.integers(0, 50), st.integers(0, 50))
def test_filler_ids_longer_draw_begins_with_the_shorter(short: int, more: int) -> None:
    longer = filler_ids(short + more, VOCABULARY, "key")
    assert longer[:short] == filler_ids(short, VOCABULARY, "key")


def test_filler_ids_from_an_empty_vocabulary_are_refused() -> None:
    with pytest.raises(ValueError, match="vocabulary"):
        filler_ids(1, range(0), "key")


def test_fixed_ids_are_the_same_each_time_and_differ_between_agents() -> None:
    made = recipe(a={"fixed_tokens": 40}, b={"fixed_tokens": 40})
    assert fixed_ids(made, "a", VOCABULARY) == fixed_ids(made, "a", VOCABULARY)
    assert fixed_ids(made, "a", VOCABULARY) != fixed_ids(made, "b", VOCABULARY)


def test_fixed_ids_of_another_recipe_differ() -> None:
    one, other = recipe("one", a={"fixed_tokens": 40}), recipe("other", a={"fixed_tokens": 40})
    assert fixed_ids(one, "a", VOCABULARY) != fixed_ids(other, "a", VOCABULARY)


def test_fixed_ids_with_a_shared_prefix_begin_alike_and_then_differ() -> None:
    shared = {"name": "house", "tokens": 16}
    spec = {"fixed_tokens": 40, "shared_prefix": shared}
    made = recipe(a=spec, b=spec)
    a, b = (fixed_ids(made, agent, VOCABULARY) for agent in "ab")
    assert len(a) == len(b) == 40
    assert a[:16] == b[:16]
    assert a[16:] != b[16:]


def test_fixed_ids_of_an_agent_with_a_prompt_are_refused() -> None:
    with pytest.raises(ValueError, match="prompt"):
        fixed_ids(recipe(a={"prompt": "a.md"}), "a", VOCABULARY)


@given(st.integers(0, 100), st.integers())
def test_filler_text_has_so_many_words(words: int, key: int) -> None:
    assert len(filler_text(words, key).split()) == words


def test_filler_text_depends_on_its_key_alone() -> None:
    assert filler_text(20, 1, "a") == filler_text(20, 1, "a")
    assert filler_text(20, 1, "a") != filler_text(20, 2, "a")
