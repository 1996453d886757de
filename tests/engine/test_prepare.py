import asyncio
import json

import pytest
import support.engine  # noqa: F401 - before SGLang
from hypothesis import given
from hypothesis import strategies as st
from sglang.srt.entrypoints.openai.serving_tokenize import OpenAIServingTokenize
from support.calm import calm

from kvflow.engine.prepare import Tokenize, fixed_prefixes, served_recipe
from kvflow.engine.settings import VARIABLE
from kvflow.recipe.model import Recipe

pytestmark = pytest.mark.engine

RECIPE = {
    "kvflow": 1,
    "name": "pair",
    "agents": {
        "a": {"prompt": "You are a."},
        "b": {"prompt": "You are b, who comes later.", "after": "a"},
        "c": {"fixed_tokens": 100, "after": "b"},
    },
}


def render(messages: list[dict[str, str]]) -> str:
    return "".join(f"<{message['role']}>{message['content']}\n" for message in messages) + "<go>"


class Letters:
    """A tokenizer of letters, with some pairs of letters merged into one token."""

    def __init__(self, *pairs: str) -> None:
        self._pairs = pairs

    def tokens(self, messages: list[dict[str, str]]) -> list[int]:
        text, found = render(messages), []
        while text:
            piece = next((pair for pair in self._pairs if text.startswith(pair)), text[0])
            found.append(hash(piece) % 100_003)
            text = text[len(piece) :]
        return found

    def of_call(self, system: str, user: str) -> list[int]:
        return self.tokens(
            [{"role": "system", "content": system}, {"role": "user", "content": user}]
        )

    def _tokenize_chat_request(self, request) -> list[int]:
        return self.tokens([dict(message) for message in request.messages])


def prefix_of(system: str, tokenize: Tokenize) -> list[int]:
    """How the calls of an agent begin whose system message this is."""
    agents = {"a": {"prompt": system}}
    recipe = Recipe.model_validate({"kvflow": 1, "name": "one", "agents": agents})
    return asyncio.run(fixed_prefixes(recipe, tokenize))["a"]


def test_prefix_ends_where_the_users_text_begins():
    prefix = prefix_of("Be kind.", Letters().tokens)
    assert len(prefix) == len("<system>Be kind.\n<user>")


@pytest.mark.parametrize("pair", [">a", ">Z", ">7", "> ", ">\n", ">-", ">(", '>"', ">é", ">日"])
def test_prefix_ends_before_a_token_that_may_merge_with_the_users_text(pair):
    prefix = prefix_of("Be kind.", Letters(pair).tokens)
    assert len(prefix) == len("<system>Be kind.\n<user")


def test_prefix_keeps_tokens_that_merge_within_the_fixed_part():
    prefix = prefix_of("Be kind.", Letters("ki", "nd", "r>").tokens)
    assert len(prefix) == len("<system>Be kind.\n<user>") - 3


@calm
@given(system=st.text(min_size=1, max_size=30), user=st.text(max_size=30))
def test_prefix_is_how_every_call_begins(system, user):
    letters = Letters(">a", "ab", "n.", "\n<")
    prefix = prefix_of(system, letters.tokens)
    assert letters.of_call(system, user)[: len(prefix)] == prefix


@calm
@given(system=st.text(min_size=1, max_size=30))
def test_prefix_is_the_longest_that_calls_have_in_common(system):
    letters = Letters("ab", "n.")
    calls = [letters.of_call(system, first) for first in ("x", "y")]
    prefix = prefix_of(system, letters.tokens)
    assert len({call[len(prefix)] for call in calls}) == 2


async def test_served_recipe_without_a_recipe_is_none(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert await served_recipe(Letters()) is None


async def test_served_recipe_has_a_prefix_for_each_agent_with_a_prompt(monkeypatch):
    monkeypatch.setenv(VARIABLE, json.dumps({"recipe": RECIPE}))
    served = await served_recipe(Letters())
    assert served is not None
    assert {agent: len(ids) for agent, ids in served["prefixes"].items()} == {
        "a": len("<system>You are a.\n<user>"),
        "b": len("<system>You are b, who comes later.\n<user>"),
    }
    assert json.loads(json.dumps(served)) == served
    assert served["recipe"]["agents"].keys() == {"a", "b", "c"}


def test_sglang_renders_chats_where_kvflow_asks_it_to():
    assert callable(OpenAIServingTokenize._tokenize_chat_request)
