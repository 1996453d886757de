"""Where each agent's fixed prefix ends, found before the first call.

The recipe says what the agent's system message is; the server's own chat template says what
tokens stand around it. Two renderings with different user texts share just the fixed part
(design 4.5 item 1). Several pairs, because a tokenizer may merge the first letters of the user's
text with what stands before it.
"""

from collections.abc import Callable
from itertools import takewhile
from typing import Any

from kvflow.engine import settings

Tokenize = Callable[[list[dict[str, str]]], list[int]]
_USER_TEXTS = ("a", "Z", "7", " x", "\nq", "-", "(", '"', "é", "日", "<")


def served_recipe(tokenizer: Any) -> dict[str, Any] | None:
    """The recipe of KVFLOW_CONFIG with its agents' fixed prefixes; None without a recipe.

    Args:
        tokenizer: SGLang's OpenAIServingTokenize, which renders chats as chat completions do.
    """
    from sglang.srt.entrypoints.openai.protocol import TokenizeRequest

    recipe = settings.from_environment().recipe
    if recipe is None:
        return None

    def tokenize(messages: list[dict[str, str]]) -> list[int]:
        return list(tokenizer._tokenize_chat_request(TokenizeRequest(messages=messages)))

    prompts = {name: spec.prompt for name, spec in recipe.agents.items() if spec.prompt}
    prefixes = {name: fixed_prefix(text, tokenize) for name, text in prompts.items()}
    return {"recipe": recipe.model_dump(mode="json", exclude_none=True), "prefixes": prefixes}


def fixed_prefix(system: str, tokenize: Tokenize) -> list[int]:
    """Token ids with which every call of an agent with this system message begins."""
    renderings = [
        tokenize([{"role": "system", "content": system}, {"role": "user", "content": text}])
        for text in _USER_TEXTS
    ]
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*renderings, strict=False))
    return [column[0] for column in columns]
