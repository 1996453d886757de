"""What `kvflow serve` makes of its command line, without starting anything."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import typer
from support.recipes import write_recipe
from typer.testing import CliRunner, Result

from kvflow.cli import serve, sglang_flags
from kvflow.errors import ExitCode, UsageError
from kvflow.recipe.model import Mode


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in ("KVFLOW_DEVICE", "SGLANG_PLUGINS", "SGLANG_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(*words: str, stdin: str | None = None) -> Result:
    app = typer.Typer()
    app.command("serve", cls=sglang_flags.Command)(serve.command)
    result = CliRunner().invoke(app, words, input=stdin)
    if isinstance(result.exception, UsageError):
        raise result.exception
    return result


def dry(*words: str, stdin: str | None = None) -> Result:
    result = run("--device", "cpu", "--dry-run", *words, stdin=stdin)
    assert result.exit_code == ExitCode.OK, result.output
    return result


def test_dry_run_prints_the_command_and_touches_nothing(home: Path) -> None:
    result = dry("--model", "my model", "--link-gbps", "2", "--", "--tp-size", "2")

    printed = shlex.split(result.stdout)
    assert result.stdout.count("\n") == 1
    assert "KVFLOW_LINK_GBPS=2" in printed
    assert printed[printed.index("--model-path") + 1] == "my model"
    assert printed[-2:] == ["--tp-size", "2"]
    assert list(home.iterdir()) == []


def test_warm_without_a_recipe_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to warm"):
        run("--warm")


def test_top_without_a_terminal_is_refused() -> None:
    with pytest.raises(UsageError, match="needs a terminal"):
        run("--top")


def test_dry_run_json_is_the_same_command() -> None:
    printed = json.loads(dry("--json").stdout)

    settings = [f"{name}={value}" for name, value in printed["env"].items()]
    assert printed["schema_version"] == 1
    assert shlex.split(dry().stdout) == [*settings, *printed["argv"]]


def test_device_can_be_told_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVFLOW_DEVICE", "cuda")

    result = run("--dry-run", "--model", "m")

    assert "--device cuda" in result.stdout


def test_recipe_s_model_on_the_cpu_is_said_not_to_be_served(home: Path) -> None:
    recipe = write_recipe(home, {"a": {}}, engine={"model": "big/model"})

    result = dry("--recipe", str(recipe))

    assert "the recipe's model, big/model, is meant for a GPU" in result.stderr
    assert "demo-model" in result.stdout
    assert "big/model --" not in result.stdout


def test_own_model_on_the_cpu_needs_no_word(home: Path) -> None:
    recipe = write_recipe(home, {"a": {}}, engine={"model": "big/model"})

    assert dry("--recipe", str(recipe), "--model", "mine").stderr == ""


def test_engine_args_that_are_left_out_on_the_cpu_are_named(home: Path) -> None:
    args = {"tp-size": 2, "mem-fraction-static": 0.8}
    recipe = write_recipe(home, {"a": {}}, engine={"args": args})

    result = dry("--recipe", str(recipe))

    assert "left out here: tp-size, mem-fraction-static; what SGLang" in result.stderr
    assert "--tp-size" not in result.stdout


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "box.lan"])
def test_bind_beyond_this_machine_without_a_key_is_warned_of(host: str) -> None:
    assert f"warning: {host} is reachable from elsewhere" in dry("--host", host).stderr


@pytest.mark.parametrize("host", ["127.0.0.2", "::1", "localhost"])
def test_bind_to_this_machine_alone_is_not_warned_of(host: str) -> None:
    assert "warning" not in dry("--host", host).stderr


@pytest.mark.parametrize(
    "words", [("--api-key-file", "-"), ("--", "--api-key", "sesame")], ids=["file", "typed"]
)
def test_bind_beyond_this_machine_with_a_key_is_not_warned_of(words: tuple[str, ...]) -> None:
    result = dry("--host", "0.0.0.0", *words, stdin="sesame\n")

    assert "is reachable from elsewhere" not in result.stderr


def test_key_file_is_named_and_its_content_is_not() -> None:
    result = dry("--api-key-file", "-", stdin="sesame\n")

    assert "sesame" not in result.output
    assert "note: the command reads " in result.stderr


@pytest.mark.parametrize("content", ["", "  \n", "two words", "-dash", "schlüssel"])
def test_key_that_cannot_be_one_is_refused(content: str) -> None:
    with pytest.raises(UsageError, match="no usable key in"):
        dry("--api-key-file", "-", stdin=content)


def test_word_that_belongs_to_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'peer\.yaml' is not an SGLang flag"):
        run("--device", "cpu", "peer.yaml")


def test_mode_name_is_the_recipe_s_mode() -> None:
    assert get_args(serve.ModeName) == get_args(Mode)


def test_import_of_the_command_is_light() -> None:
    heavy = {"sglang", "torch", "textual", "pydantic", "psutil", "msgspec", "platformdirs"}
    script = "import sys, kvflow.cli.serve; print(*sys.modules)"

    loaded = subprocess.check_output([sys.executable, "-c", script], text=True).split()

    assert not heavy & set(loaded)
