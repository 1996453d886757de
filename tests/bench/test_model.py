import json

import huggingface_hub
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm
from support.recipes import make_recipe
from tokenizers import Tokenizer, models, pre_tokenizers

from kvflow.bench.model import FixedSet, fixed_set, kv_bytes_per_token, unique_tokens
from kvflow.errors import KvflowError, UsageError


@calm
@given(st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=6))
def test_unique_tokens_are_the_nodes_of_a_trie(prefixes):
    trie = {tuple(prefix[:end]) for prefix in prefixes for end in range(1, len(prefix) + 1)}
    assert unique_tokens(prefixes) == len(trie)


def test_fixed_set_counts_a_shared_prefix_once(tmp_path):
    a, b = [
        {"fixed_tokens": 100, "shared_prefix": {"name": "rules", "tokens": 40}} for _ in range(2)
    ]
    loaded = make_recipe(tmp_path, {"a": a, "b": b, "c": {"fixed_tokens": 120}})
    assert fixed_set(loaded, "no model needed") == FixedSet(40 + 60 + 60 + 120, 120)


def byte_tokenizer(folder):
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.save(str(folder / "tokenizer.json"))


def test_fixed_set_of_prompt_files_is_what_the_models_tokenizer_makes_of_them(tmp_path):
    byte_tokenizer(tmp_path)
    loaded = make_recipe(tmp_path, {"one": {}, "two": {"after": "one"}})
    common, whole = len("You are "), len("You are one.")
    assert fixed_set(loaded, str(tmp_path)) == FixedSet(2 * whole - common, whole)


@pytest.mark.parametrize(
    ("config", "dtype", "expected"),
    [
        # Qwen2.5-32B and Llama-3.1-8B: 256 and 128 KiB a token.
        (
            {"num_hidden_layers": 64, "num_attention_heads": 40, "num_key_value_heads": 8,
             "hidden_size": 5120}, "bfloat16", 256 * 1024,
        ),
        (
            {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
             "hidden_size": 4096, "head_dim": 128}, "float16", 128 * 1024,
        ),
        (
            {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64},
            "float32", 2 * 2 * 64 * 4,
        ),
    ],
)  # fmt: skip
def test_kv_bytes_follow_from_the_configuration(tmp_path, config, dtype, expected):
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert kv_bytes_per_token(str(tmp_path), dtype) == expected


def test_kv_bytes_of_numbers_of_unknown_size_are_refused(tmp_path):
    with pytest.raises(UsageError, match="--dtype auto"):
        kv_bytes_per_token(str(tmp_path), "auto")


def test_model_that_is_not_there_is_named(monkeypatch):
    def gone(model: str, name: str) -> str:
        raise OSError("no such repository")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", gone)
    with pytest.raises(KvflowError, match=r"config\.json of the model no/such"):
        kv_bytes_per_token("no/such", "float32")
