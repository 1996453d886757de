import dataclasses
import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from support.launches import loaded

from kvflow.engine.cpu import demo_model
from kvflow.engine.launch import Launch, Options, build
from kvflow.errors import UsageError

CPU = Options(device="cpu")
CUDA = Options(device="cuda", model="m")


def flag(launch: Launch, name: str) -> str:
    """The value of a flag, which must be there once."""
    assert launch.argv.count(name) == 1, launch.argv
    return launch.argv[launch.argv.index(name) + 1]


def with_typed(options: Options, *words: str) -> Options:
    return dataclasses.replace(options, sglang_flags=words)


def test_build_cpu_without_model_serves_the_built_in_one() -> None:
    launch = build(CPU, None, {})

    assert launch.argv[1:4] == ("-m", "sglang.launch_server", "--model-path")
    assert launch.model == flag(launch, "--model-path") == str(demo_model.folder())
    assert flag(launch, "--device") == "cpu"
    assert launch.url == "http://127.0.0.1:30000"


def test_build_cpu_does_not_use_the_recipe_s_engine_section() -> None:
    recipe = loaded(model="big/model", args={"mem-fraction-static": 0.85, "tp-size": 8})

    launch = build(CPU, recipe, {})

    assert launch.model == str(demo_model.folder())
    assert not {"--mem-fraction-static", "--tp-size"} & set(launch.argv)


def test_build_cuda_uses_the_recipe_s_engine_section() -> None:
    recipe = loaded(model="big/model", args={"mem-fraction-static": 0.85})

    launch = build(Options(device="cuda"), recipe, {})

    assert launch.model == "big/model"
    assert flag(launch, "--mem-fraction-static") == "0.85"
    assert launch.recipe == Path("flows/two.yaml").absolute()


def test_build_cuda_recipe_can_turn_a_default_off() -> None:
    recipe = loaded(model="m", args={"enable-hierarchical-cache": False})

    assert "--enable-hierarchical-cache" not in build(Options(device="cuda"), recipe, {}).argv


def test_build_cuda_recipe_can_turn_the_host_tier_off_beside_the_plugin() -> None:
    recipe = loaded(model="m", args={"enable-hierarchical-cache": False})

    launch = build(Options(device="cuda", with_plugin=True), recipe, {})

    assert "--enable-hierarchical-cache" not in launch.argv


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("with_plugin", [True, False])
def test_build_cuda_host_tier_that_is_asked_for_wins_over_the_recipe(
    asked: bool, with_plugin: bool
) -> None:
    recipe = loaded(model="m", args={"enable-hicache": not asked})
    options = Options(device="cuda", with_plugin=with_plugin, host_tier=asked)

    argv = build(options, recipe, {}).argv

    assert ("--enable-hierarchical-cache" in argv) == asked
    assert "--enable-hicache" not in argv


def test_build_cuda_without_any_model_is_refused() -> None:
    with pytest.raises(UsageError, match="no model to serve"):
        build(Options(device="cuda"), loaded(), {})


def test_build_options_win_over_the_recipe() -> None:
    recipe = loaded(model="big/model", args={"port": 1234})

    launch = build(Options(device="cuda", model="mine", port=4321), recipe, {})

    assert (launch.model, launch.port) == ("mine", 4321)


@pytest.mark.parametrize(
    "typed",
    [
        ("--model", "typed", "--port", "5555"),
        ("--model-path=typed", "--port=5555"),
    ],
)
def test_build_typed_flags_win_over_everything(typed: tuple[str, ...]) -> None:
    recipe = loaded(model="big/model", args={"port": 1234})
    options = Options(device="cuda", model="mine", port=4321, sglang_flags=typed)

    launch = build(options, recipe, {})

    assert (launch.model, launch.port) == ("typed", 5555)
    assert launch.url == "http://127.0.0.1:5555"
    assert not {"mine", "big/model", "4321", "1234"} & set(launch.argv)


def test_build_without_host_tier_has_no_trace_of_it() -> None:
    launch = build(dataclasses.replace(CPU, host_tier=False), None, {})

    assert not [word for word in launch.argv if "hicache" in word or "hierarchical" in word]


def test_build_with_plugin_selects_our_cache_and_hands_the_recipe_over() -> None:
    launch = build(dataclasses.replace(CPU, with_plugin=True), loaded(), {})

    assert flag(launch, "--radix-cache-backend") == "kvflow"
    assert launch.argv.count("--enable-hierarchical-cache") == 1
    assert launch.mode == "evict"
    assert json.loads(launch.env["KVFLOW_CONFIG"])["recipe"]["name"] == "two"
    assert not launch.files


def test_build_with_plugin_long_prompts_travel_in_a_file() -> None:
    recipe = dataclasses.replace(loaded(), prompts={"writer": "long " * 40_000})

    launch = build(dataclasses.replace(CPU, with_plugin=True), recipe, {})

    [(path, content)] = launch.files.items()
    assert launch.env["KVFLOW_CONFIG"] == f"@{path}"
    assert json.loads(content)["recipe"]["agents"]["writer"]["prompt"] == "long " * 40_000


def test_build_mode_without_plugin_is_refused_unless_off() -> None:
    assert build(dataclasses.replace(CPU, mode="off"), None, {}).mode == "off"
    with pytest.raises(UsageError, match="mode full"):
        build(dataclasses.replace(CPU, mode="full"), None, {})


def test_build_stock_server_has_nothing_of_the_plugin() -> None:
    launch = build(CUDA, loaded(), {})

    assert launch.mode == "off"
    assert "KVFLOW_CONFIG" not in launch.env
    assert "--radix-cache-backend" not in launch.argv


def test_build_api_key_is_on_no_command_line() -> None:
    launch = build(dataclasses.replace(CPU, api_key="sesame"), None, {})

    assert "sesame" not in launch.shell() + repr(launch)
    path = Path(flag(launch, "--config"))
    assert json.loads(launch.files[path]) == {"api-key": "sesame"}
    assert launch.guarded


@pytest.mark.parametrize("typed", [("--config", "mine.yaml"), ("--api-key", "k")])
def test_build_api_key_file_beside_another_key_is_refused(typed: tuple[str, ...]) -> None:
    options = dataclasses.replace(CPU, api_key="sesame", sglang_flags=typed)

    with pytest.raises(UsageError, match="contradict each other"):
        build(options, None, {})


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        (("--host", "0.0.0.0"), "http://127.0.0.1:30000"),
        (("--host", "::"), "http://[::1]:30000"),
        (("--host", "10.0.0.1"), "http://10.0.0.1:30000"),
        (("--ssl-certfile", "c.pem"), "https://127.0.0.1:30000"),
    ],
)
def test_build_url_is_one_that_this_machine_can_reach(typed: tuple[str, ...], url: str) -> None:
    assert build(with_typed(CPU, *typed), None, {}).url == url


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1"])
def test_build_typed_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(UsageError, match="is not a port"):
        build(with_typed(CPU, "--port", port), None, {})


def test_build_typed_device_is_refused() -> None:
    with pytest.raises(UsageError, match="--device cuda is for kvflow"):
        build(with_typed(CPU, "--device", "cuda"), None, {})


def test_shell_line_is_read_back_by_a_shell_word_for_word() -> None:
    launch = build(with_typed(CPU, "--chat-template", "it's a 'test' $HOME"), None, {})
    count = len(launch.argv) - 1
    shown = launch.shell().replace(shlex.quote(launch.argv[0]), "printf '%s\\0'", 1)

    done = subprocess.run(["/bin/sh", "-c", shown], capture_output=True, text=True, check=True)

    assert tuple(done.stdout.split("\0")[:count]) == launch.argv[1:]


def test_build_reads_nothing_from_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "SGLANG_PLUGINS", "theirs")

    assert build(CPU, None, {}).env["SGLANG_PLUGINS"] == "kvflow_cpu"
