"""What a bench must know of a model before a server runs: token counts and bytes of KV."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kvflow.errors import KvflowError, UsageError
from kvflow.recipe.load import Loaded
from kvflow.workload import fixed_ids

_ANY_IDS = range(256)  # stand-ins for synthetic prefixes: only what they share matters here
_DTYPE_BYTES = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}


class FixedSet(NamedTuple):
    """The fixed prefixes of a recipe, in tokens.

    Attributes:
        unique: all of them, what agents share counted once.
        longest: the longest one.
    """

    unique: int
    longest: int


def fixed_set(loaded: Loaded, model: str) -> FixedSet:
    """How large the fixed prefixes of a recipe are for a model.

    The few tokens that a chat template puts around a system message are not counted.

    Args:
        loaded: the recipe.
        model: path or name of the model; looked at only if an agent has a prompt file.

    Raises:
        KvflowError: the model's tokenizer cannot be read.
    """
    prefixes: list[Sequence[int]] = []
    tokenizer: Any = None
    for name, spec in loaded.recipe.agents.items():
        if spec.prompt is None:
            prefixes.append(fixed_ids(loaded.recipe, name, _ANY_IDS))
        else:
            tokenizer = tokenizer or _tokenizer(model)
            prefixes.append(tokenizer.encode(loaded.prompts[name], add_special_tokens=False).ids)
    return FixedSet(unique_tokens(prefixes), max(map(len, prefixes)))


def unique_tokens(prefixes: Sequence[Sequence[int]]) -> int:
    """The tokens that a radix tree of some prefixes holds."""
    before: Sequence[int] = ()
    total = 0
    for prefix in sorted(prefixes, key=tuple):  # next to the one with which it shares most
        total += len(prefix) - _common(before, prefix)
        before = prefix
    return total


def kv_bytes_per_token(model: str, dtype: str) -> int:
    """Bytes of keys and values of one token, over all layers.

    Args:
        model: path or name of a model with plain attention (MHA or GQA).
        dtype: of the cache, as SGLang's --dtype takes it.

    Raises:
        UsageError: the size of such numbers is not known.
        KvflowError: the model's configuration cannot be read.
    """
    if dtype not in _DTYPE_BYTES:
        raise UsageError(
            f"the link cannot be set for --dtype {dtype}",
            "how many bytes a number of it has is not known",
            f"take one of {', '.join(_DTYPE_BYTES)}",
        )
    config = json.loads(_file(model, "config.json").read_text())
    heads = config["num_attention_heads"]
    head_size = config.get("head_dim") or config["hidden_size"] // heads
    kv_heads = config.get("num_key_value_heads", heads)
    return int(2 * config["num_hidden_layers"] * kv_heads * head_size * _DTYPE_BYTES[dtype])


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return at
    return min(len(one), len(other))


def _tokenizer(model: str) -> Any:
    from tokenizers import Tokenizer  # the engine extra; transformers would take ten seconds

    return Tokenizer.from_file(str(_file(model, "tokenizer.json")))


def _file(model: str, name: str) -> Path:
    """A file of a model: in its folder, or from the hub's cache, or from the hub."""
    path = Path(model).expanduser() / name
    if path.is_file():
        return path
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(model, name))
    except (OSError, ValueError) as error:
        raise KvflowError(
            f"cannot read {name} of the model {model}",
            str(error).splitlines()[0],
            "download the model and pass its folder: --model PATH",
        ) from error
