"""Where each agent's fixed prefix ends, found before the first call.

The recipe says what the agent's system message is; the server's own chat template says what
tokens stand around it. Two renderings with different user texts share just the fixed part.
Several pairs, because a tokenizer may merge the first letters of the user's text with what stands
before it.
"""

import asyncio
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

from kvflow.engine import settings
from kvflow.recipe.model import Recipe

Tokenize = Callable[[list[dict[str, str]]], list[int]]
_USER_TEXTS = ("a", "Z", "7", " x", "\nq", "-", "(", '"', "é", "日", "<")


async def served_recipe(tokenizer: Any) -> dict[str, Any] | None:
    """The recipe of KVFLOW_CONFIG with its agents' fixed prefixes; None without a recipe.

    Args:
        tokenizer: SGLang's OpenAIServingTokenize, which renders chats as chat completions do.
    """
    recipe = settings.from_environment().recipe
    if recipe is None:
        return None
    prefixes = await fixed_prefixes(recipe, chat_tokenizer(tokenizer))
    return {"recipe": recipe.model_dump(mode="json", exclude_none=True), "prefixes": prefixes}


def chat_tokenizer(tokenizer: Any) -> Tokenize:
    """What SGLang's OpenAIServingTokenize makes of a chat: token ids, as for chat completions."""
    from sglang.srt.entrypoints.openai.protocol import TokenizeRequest

    def tokenize(messages: list[dict[str, str]]) -> list[int]:
        return list(tokenizer._tokenize_chat_request(TokenizeRequest(messages=messages)))

    return tokenize


async def fixed_prefixes(recipe: Recipe, tokenize: Tokenize) -> dict[str, list[int]]:
    """The fixed prefix of each agent that has a prompt, by name.

    SGLang's tokenizer is not safe to use from another thread, so others wait while it works: one
    rendering at most.
    """
    found = {}
    for name, spec in recipe.agents.items():
        if spec.prompt is not None:
            renderings = []
            for rendering in _renderings(spec.prompt, tokenize):
                renderings.append(rendering)
                await asyncio.sleep(0)
            found[name] = _common(renderings)
    return found


def _renderings(system: str, tokenize: Tokenize) -> Iterator[list[int]]:
    for text in _USER_TEXTS:
        yield tokenize([{"role": "system", "content": system}, {"role": "user", "content": text}])


def _common(renderings: list[list[int]]) -> list[int]:
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*renderings, strict=False))
    return [column[0] for column in columns]
