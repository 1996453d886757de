from pathlib import Path

import pytest
from support.launches import fake_launch

from kvflow.engine.cpu import demo_model
from kvflow.engine.launch import demo
from kvflow.errors import KvflowError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_missing_only_the_built_in_model_can_be() -> None:
    built_in = fake_launch(30000, model=str(demo_model.folder()))

    assert demo.missing(built_in)
    assert not demo.missing(fake_launch(30000, model="/no/such/model"))
    demo_model.folder().mkdir(parents=True)
    assert not demo.missing(built_in)


def test_write_where_nothing_can_be_written_says_where_and_why(cache: Path) -> None:
    (cache / "kvflow").write_text("a file where the folder should be")

    with pytest.raises(KvflowError, match=f"cannot write the built-in model to {cache}") as caught:
        demo.write()
    assert caught.value.why.startswith("FileExistsError")


@pytest.mark.engine
def test_write_leaves_a_whole_model() -> None:
    demo.write()

    names = {path.name for path in demo_model.folder().iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
