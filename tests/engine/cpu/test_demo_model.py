import json

import pytest

from kvflow.engine.cpu import demo_model

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return demo_model.ensure(tmp_path_factory.mktemp("cache"))


def test_model_is_written_once(model):
    written = (model / "model.safetensors").stat().st_mtime_ns
    assert demo_model.ensure(model.parent) == model
    assert (model / "model.safetensors").stat().st_mtime_ns == written
    assert [child.name for child in model.parent.iterdir()] == [model.name]


def test_tokenizer_takes_one_token_a_byte_and_gives_the_text_back(model):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    text = "Plan: naïve café, 日本 🙂\n\tEnd."
    ids = tokenizer.encode(text)
    assert len(ids) == len(text.encode())
    assert tokenizer.decode(ids) == text
    assert max(ids) < 256


def test_chat_template_makes_the_system_message_the_prefix(model):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    chats = [
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": user}]
        for user in ("a", "zz")
    ]
    one, two = (
        tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        for chat in chats
    )
    assert one.startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\na")
    assert two.endswith("zz<|im_end|>\n<|im_start|>assistant\n")


def test_vocabulary_holds_every_token_the_tokenizer_knows(model):
    config = json.loads((model / "config.json").read_text())
    vocabulary = json.loads((model / "tokenizer.json").read_text())
    ids = [*vocabulary["model"]["vocab"].values(), *(t["id"] for t in vocabulary["added_tokens"])]
    assert sorted(ids) == list(range(config["vocab_size"]))
    assert config["eos_token_id"] == ids[-1]
