"""The built-in model: a small Llama with random weights, made on the spot, nothing downloaded.

Its text is noise; its timing, its KV and its scheduling are real. The weights have a standard
deviation of 0.15, large enough that a wrong KV entry changes the output.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

_VERSION = 1  # of what is written; a change makes a new folder
_SPECIAL = ("<|pad|>", "<|im_start|>", "<|im_end|>")
_CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 96,
    "vocab_size": 256 + len(_SPECIAL),
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
    "pad_token_id": 256,
    "bos_token_id": None,
    "eos_token_id": 258,
    "torch_dtype": "float32",
}
_CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_STD = 0.15


def folder(cache: Path | None = None) -> Path:
    """Where the model is, or will be. Imports nothing heavy."""
    return (cache or user_cache_path("kvflow")) / f"demo-model-v{_VERSION}"


def ensure(cache: Path | None = None) -> Path:
    """Write the model if it is not there yet (about 100 MB, a second) and return its folder.

    Safe when several processes do it at once: it is written aside and moved into place whole.
    """
    target = folder(cache)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=".demo-model-"))
    try:
        _write(aside)
        os.chmod(aside, 0o755)
        aside.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return target


def best_dtype() -> str:
    """bfloat16 where this CPU computes with it, else float32 (bf16 would be 100 times slower)."""
    try:
        flags = Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return "float32"
    return "bfloat16" if {"avx512_bf16", "amx_bf16"} & set(flags) else "float32"


def _write(target: Path) -> None:
    _write_tokenizer(target)
    (target / "config.json").write_text(json.dumps(_CONFIG, indent=1))
    generation = {"eos_token_id": _CONFIG["eos_token_id"], "pad_token_id": _CONFIG["pad_token_id"]}
    (target / "generation_config.json").write_text(json.dumps(generation))
    _write_weights(target)


def _write_tokenizer(target: Path) -> None:
    """One token a byte: every text has an exact length, and nothing has to be trained."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in _SPECIAL])
    tokenizer.save(str(target / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": _SPECIAL[0],
        "eos_token": _SPECIAL[2],
        "model_max_length": _CONFIG["max_position_embeddings"],
        "chat_template": _CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
    }
    (target / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))


def _write_weights(target: Path) -> None:
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(2507_07400)
    hidden, inner, vocab = (_CONFIG[k] for k in ("hidden_size", "intermediate_size", "vocab_size"))
    kv = _CONFIG["num_key_value_heads"] * _CONFIG["head_dim"]

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * _STD

    weights = {
        "model.embed_tokens.weight": random(vocab, hidden),
        "model.norm.weight": torch.ones(hidden),
        "lm_head.weight": random(vocab, hidden),
    }
    for layer in range(_CONFIG["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        weights |= {
            f"{at}.input_layernorm.weight": torch.ones(hidden),
            f"{at}.post_attention_layernorm.weight": torch.ones(hidden),
            f"{at}.self_attn.q_proj.weight": random(hidden, hidden),
            f"{at}.self_attn.k_proj.weight": random(kv, hidden),
            f"{at}.self_attn.v_proj.weight": random(kv, hidden),
            f"{at}.self_attn.o_proj.weight": random(hidden, hidden),
            f"{at}.mlp.gate_proj.weight": random(inner, hidden),
            f"{at}.mlp.up_proj.weight": random(inner, hidden),
            f"{at}.mlp.down_proj.weight": random(hidden, inner),
        }
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
