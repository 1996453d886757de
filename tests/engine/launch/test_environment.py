import json

import pytest
from support.launches import loaded

from kvflow.engine.launch import environment
from kvflow.engine.launch.options import Options
from kvflow.errors import UsageError
from kvflow.recipe.model import Recipe


@pytest.mark.parametrize(
    ("device", "with_plugin", "inherited", "expected"),
    [
        ("cpu", False, "", "kvflow_cpu"),
        ("cuda", False, "", "none"),
        ("cpu", True, "", None),  # unset means all
        ("cuda", True, "", None),
        ("cpu", True, "theirs", "theirs,kvflow,kvflow_cpu"),
        ("cuda", True, "theirs", "theirs,kvflow"),
        ("cuda", False, "kvflow, theirs", "theirs"),
        ("cuda", False, "kvflow", "none"),
    ],
)
def test_settings_plugins_are_ours_as_wanted_and_theirs_as_inherited(
    device: str, with_plugin: bool, inherited: str, expected: str | None
) -> None:
    options = Options(device=device, with_plugin=with_plugin)

    env = environment.settings(options, {"SGLANG_PLUGINS": inherited})

    assert env.get("SGLANG_PLUGINS") == expected


def test_settings_cpu_selects_our_platform_and_hides_the_gpu() -> None:
    env = environment.settings(Options(device="cpu", link_gbps=1.5), {})

    assert env["KVFLOW_DEVICE"] == "cpu"
    assert env["SGLANG_PLATFORM"] == "kvflow_cpu"
    assert env["CUDA_VISIBLE_DEVICES"] == ""
    assert env["KVFLOW_LINK_GBPS"] == "1.5"


def test_settings_cuda_leaves_platform_and_gpus_alone() -> None:
    env = environment.settings(Options(device="cuda"), {})

    assert env == {"KVFLOW_DEVICE": "cuda", "SGLANG_PLUGINS": "none"}


def test_settings_link_speed_on_a_gpu_is_refused() -> None:
    with pytest.raises(UsageError, match="--link-gbps is for the CPU engine"):
        environment.settings(Options(device="cuda", link_gbps=1.0), {})


def test_plugin_config_holds_the_prompts_and_is_a_recipe_again() -> None:
    config = json.loads(environment.plugin_config(loaded(), "evict"))

    assert config["mode"] == "evict"
    assert config["policy"]["prefetch_depth"] == 2
    assert "mode" not in config["policy"]
    again = Recipe.model_validate(config["recipe"])
    assert again.agents["writer"].prompt == "You write."
    assert again.agents["critic"].after == loaded().recipe.agents["critic"].after


def test_plugin_config_without_recipe_has_the_default_policy() -> None:
    config = json.loads(environment.plugin_config(None, "off"))

    assert config["recipe"] is None
    assert config["policy"]["untagged_steps"] == 4
