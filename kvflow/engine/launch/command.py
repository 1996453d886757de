"""The SGLang command for a recipe and some options: built here, started by `server`.

Nothing here starts or writes anything, so that `kvflow serve --dry-run` shows what a start would
do, word for word.
"""

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kvflow.engine.cpu import demo_model
from kvflow.engine.here import state_folder
from kvflow.engine.launch import environment, flags
from kvflow.engine.launch.device import Device
from kvflow.engine.launch.flags import Flag
from kvflow.engine.launch.options import Options
from kvflow.errors import UsageError
from kvflow.recipe.load import Loaded
from kvflow.recipe.model import Mode, PolicySpec

# Linux gives one environment variable 128 KiB (MAX_ARG_STRLEN); the rest is for its name.
_ENV_BYTES = 120 * 1024

_CPU_POOL_TOKENS = 32_768
_CPU_HOST_RATIO = 4

_HOST_TIER = Flag("--enable-hierarchical-cache")


@dataclass(frozen=True, slots=True)
class Launch:
    """A command that can be started, and what is known of the server it makes.

    Attributes:
        argv: the command, its program first.
        env: variables that are set on top of the inherited ones.
        files: files that must be there before the start, readable by their owner only.
        url: where the server will answer.
        host: address it binds to.
        port: port it listens on.
        device: what it runs on.
        mode: how much of kvflow is at work.
        model: path or name of the model.
        recipe: the recipe it serves, if any.
        guarded: whether a key is wanted of clients.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[Path, str] = field(repr=False)
    url: str
    host: str
    port: int
    device: Device
    mode: Mode
    model: str
    recipe: Path | None
    guarded: bool

    def shell(self) -> str:
        """The command as one line for a POSIX shell."""
        settings = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        return " ".join([*settings, shlex.join(self.argv)])


def build(options: Options, loaded: Loaded | None, environ: Mapping[str, str]) -> Launch:
    """The command that serves a recipe.

    Later sources win: defaults of the device, the recipe (on a GPU: its `engine` section is
    written for one), the options, and the SGLang flags as typed.

    Args:
        options: what was asked for.
        loaded: the recipe, or None for a server without one.
        environ: the environment that the server will inherit.

    Raises:
        UsageError: the options contradict each other or name no model.
    """
    mode = _mode(options, loaded)
    given = _flags(options, loaded)
    port = _port(flags.value_of(given, "--port"))
    env, files = environment.settings(options, environ), {}
    if options.with_plugin:
        config = environment.plugin_config(loaded, mode)
        if len(config.encode()) > _ENV_BYTES:
            path = _private_file(port, "config.json")
            files[path], config = config, f"@{path}"
        env["KVFLOW_CONFIG"] = config
    if options.api_key is not None:
        given, key_file = _hide_key(given, port)
        files[key_file] = json.dumps({"api-key": options.api_key})  # JSON is YAML
    host = flags.value_of(given, "--host")
    keys = {flag.key for flag in given}
    return Launch(
        argv=(sys.executable, "-m", "sglang.launch_server", *flags.words(given)),
        env=env,
        files=files,
        url=_url(host, port, tls="--ssl-certfile" in keys),
        host=host,
        port=port,
        device=options.device,
        mode=mode,
        model=flags.value_of(given, "--model-path"),
        recipe=loaded.path.absolute() if loaded else None,
        guarded=bool(options.api_key or {"--api-key", "--admin-api-key"} & keys),
    )


def _mode(options: Options, loaded: Loaded | None) -> Mode:
    if options.with_plugin:
        policy = loaded.recipe.policy if loaded else PolicySpec()
        return options.mode or policy.mode
    if options.mode not in (None, "off"):
        raise UsageError(
            f"mode {options.mode} is not to be had here",
            "SGLang is started without the kvflow plugin, which decides nothing then",
            "leave --mode out, or say --mode off",
        )
    return "off"


def _flags(options: Options, loaded: Loaded | None) -> list[Flag]:
    typed = flags.parse(options.sglang_flags)
    if device := flags.value_of(typed, "--device"):
        raise UsageError(
            f"--device {device} is for kvflow to say to SGLang",
            "more than this one flag depends on it",
            "put it before the --: kvflow serve --device cpu",
        )
    defaults = [Flag("--host", ("127.0.0.1",)), Flag("--port", ("30000",))]
    defaults += _device_flags(options)
    recipe: list[Flag] = []
    if loaded is not None and options.device == "cuda":
        engine = loaded.recipe.engine
        recipe, off = flags.from_recipe(engine.args)
        defaults = [flag for flag in defaults if flag.key not in off]
        if engine.model is not None:
            recipe.append(Flag("--model-path", (engine.model,)))
    asked = {"--model-path": options.model, "--host": options.host, "--port": options.port}
    wanted = [Flag(name, (str(value),)) for name, value in asked.items() if value is not None]
    if options.host_tier:
        wanted.append(_HOST_TIER)
    elif options.host_tier is False:
        recipe = [flag for flag in recipe if flag.key != _HOST_TIER.key]
    if options.with_plugin:
        wanted.append(Flag("--radix-cache-backend", ("kvflow",)))
    merged = flags.merge(defaults, recipe, wanted, typed)
    if flags.value_of(merged, "--model-path"):
        return sorted(merged, key=lambda flag: flag.key != "--model-path")
    if options.device == "cuda":
        raise UsageError(
            "no model to serve",
            "neither the recipe's engine.model nor --model names one",
            "kvflow serve --model Qwen/Qwen2.5-7B-Instruct",
        )
    return [Flag("--model-path", (str(demo_model.folder()),)), *merged]


def _device_flags(options: Options) -> list[Flag]:
    found, host_tier = [Flag("--device", (options.device,))], options.host_tier is not False
    if host_tier:
        found.append(_HOST_TIER)
    if options.device == "cuda":
        return found
    found += [
        Flag("--attention-backend", ("torch_native",)),
        Flag("--dtype", (demo_model.best_dtype(),)),
        Flag("--max-total-tokens", (str(_CPU_POOL_TOKENS),)),
        # An idle scheduler spins, which on a GPU box costs one core of many, here half of all.
        Flag("--sleep-on-idle"),
    ]
    if host_tier:
        # The other transfer backends are GPU kernels.
        found += [
            Flag("--hicache-io-backend", ("direct",)),
            Flag("--hicache-mem-layout", ("layer_first",)),
            Flag("--hicache-ratio", (str(_CPU_HOST_RATIO),)),
        ]
    return found


def _hide_key(given: list[Flag], port: int) -> tuple[list[Flag], Path]:
    """Hand the key over in a file: a command line can be read by everyone on the machine."""
    keys = {flag.key for flag in given}
    if clash := {"--config", "--api-key"} & keys:
        raise UsageError(
            f"--api-key-file and {clash.pop()} contradict each other",
            "the key travels in SGLang's own --config file, and there can be only one",
            "put the line 'api-key: ...' into that file, or leave one of them out",
        )
    path = _private_file(port, "key.yaml")
    return [*given, Flag("--config", (str(path),))], path


def _private_file(port: int, name: str) -> Path:
    return state_folder() / "launch" / f"{port}.{name}"


def _port(text: str) -> int:
    if text.isdecimal() and 0 < int(text) < 65_536:
        return int(text)
    raise UsageError(f"{text!r} is not a port", hint="take a number from 1024 to 65535")


def _url(host: str, port: int, *, tls: bool) -> str:
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    if ":" in reachable:
        reachable = f"[{reachable}]"
    return f"{'https' if tls else 'http'}://{reachable}:{port}"
