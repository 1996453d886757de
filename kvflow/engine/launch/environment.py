"""The environment variables by which SGLang and kvflow's parts inside it are told what to be."""

import json
from collections.abc import Mapping

from kvflow.engine.launch.options import Options
from kvflow.errors import UsageError
from kvflow.recipe.load import Loaded
from kvflow.recipe.model import Mode, PolicySpec

CPU_PLATFORM = "kvflow_cpu"
"""Name of the platform and of the general plugin that make SGLang run on a plain CPU."""

# SGLang reads an empty SGLANG_PLUGINS as "all of them", so that "none" has to be a name
# (sglang/srt/plugins/__init__.py, `load_plugins_by_group`).
_NO_PLUGIN = "none"
_OURS = ("kvflow", CPU_PLATFORM)


def settings(options: Options, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables to set on top of an environment, without those of the plugin.

    Raises:
        UsageError: the options contradict each other.
    """
    env: dict[str, str] = {"KVFLOW_DEVICE": options.device}
    if options.device == "cpu":
        # A GPU that can be seen would be used by parts of SGLang that do not ask the platform.
        env |= {"SGLANG_PLATFORM": CPU_PLATFORM, "CUDA_VISIBLE_DEVICES": ""}
    if options.link_gbps is not None:
        if options.device != "cpu":
            raise UsageError(
                "--link-gbps is for the CPU engine",
                f"on {options.device} the link is real",
                "leave it out, or say --device cpu",
            )
        env["KVFLOW_LINK_GBPS"] = f"{options.link_gbps:g}"
    if plugins := _plugins(options, environ.get("SGLANG_PLUGINS", "")):
        env["SGLANG_PLUGINS"] = plugins
    return env


def _plugins(options: Options, inherited: str) -> str:
    """SGLANG_PLUGINS: whatever others the environment asks for, and of ours what is wanted."""
    named = [name.strip() for name in inherited.split(",") if name.strip()]
    if options.with_plugin and not named:
        return ""
    chosen = [name for name in named if name not in _OURS]
    chosen += ["kvflow"] if options.with_plugin else []
    chosen += [CPU_PLATFORM] if options.device == "cpu" else []
    return ",".join(chosen) or _NO_PLUGIN


def plugin_config(loaded: Loaded | None, mode: Mode) -> str:
    """KVFLOW_CONFIG: what the plugin reads, the prompts by their text."""
    recipe = None
    policy = PolicySpec()
    if loaded is not None:
        policy = loaded.recipe.policy
        apart = {"policy", "engine", "workload"}
        recipe = loaded.recipe.model_dump(mode="json", exclude_none=True, exclude=apart)
        for agent, text in loaded.prompts.items():
            recipe["agents"][agent]["prompt"] = text
    tuning = policy.model_dump(mode="json", exclude={"mode"})
    return json.dumps({"mode": mode, "policy": tuning, "recipe": recipe})
