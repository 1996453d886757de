"""`kvflow serve`: what can be asked for, and what is said before SGLang is started."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kvflow.cli.serve_narrator import Narrator
from kvflow.errors import UsageError
from kvflow.loopback import is_loopback

if TYPE_CHECKING:
    from kvflow.engine.launch import Launch
    from kvflow.recipe.load import Loaded

ModeName = Literal["off", "evict", "prefetch", "full"]
"""kvflow.recipe.model.Mode, without its import."""


def command(
    ctx: typer.Context,
    recipe: Annotated[
        str | None, typer.Option("--recipe", "-r", help="Recipe: a file, or a built-in name.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="Model path or name; on a CPU a built-in one if absent."
        ),
    ] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        typer.Option(envvar="KVFLOW_DEVICE", help="auto: cuda where an NVIDIA GPU is visible."),
    ] = "auto",
    mode: Annotated[
        ModeName | None, typer.Option(help="How much of kvflow is at work; the recipe's if absent.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to bind to.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Port.", show_default="30000")
    ] = None,
    link_gbps: Annotated[
        float | None,
        typer.Option(
            "--link-gbps", min=1e-6, help="Speed of the CPU engine's emulated link in GB/s."
        ),
    ] = None,
    api_key_file: Annotated[
        typer.FileText | None,
        typer.Option(help="File with the key that clients must send; - reads stdin."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds that the start may take.")
    ] = 1800.0,
    log_file: Annotated[
        Path | None, typer.Option(help="SGLang's log.", show_default="in kvflow's state folder")
    ] = None,
    warm: Annotated[
        bool,
        typer.Option("--warm", help="Compute the recipe's prefixes before the first call comes."),
    ] = False,
    top: Annotated[
        bool, typer.Option("--top", help="Show kvflow top while it serves; q ends both.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show SGLang's log on stderr too.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the SGLang command and start nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Serve a recipe with SGLang; Ctrl-C ends it. SGLang's own flags follow --.

    Example: kvflow serve --recipe peer.yaml -- --max-total-tokens 16384
    """
    from kvflow.cli import serve_screen
    from kvflow.cli.serve_session import Session
    from kvflow.engine.launch import Options, build, choose
    from kvflow.recipe.load import find, load

    loaded = load(find(recipe)) if recipe is not None else None
    if warm and loaded is None:
        raise UsageError(
            "--warm has nothing to warm",
            "prefixes are a recipe's",
            "kvflow serve --recipe F --warm",
        )
    if top and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "--top needs a terminal to show its screen on and to read keys from",
            hint="kvflow top, in another terminal, finds a server that runs here",
        )
    if top:
        serve_screen.check()
    api_key = _read_key(api_key_file) if api_key_file is not None else None
    options = Options(
        device=choose(device, os.environ),
        model=model,
        mode=mode,
        host=host,
        port=port,
        link_gbps=link_gbps,
        api_key=api_key,
        sglang_flags=tuple(ctx.args),
        with_plugin=True,
    )
    launch = build(options, loaded, os.environ)
    with Narrator() as narrator:
        _note(narrator, launch, loaded)
        if dry_run:
            _print_command(launch, as_json=as_json)
            return
        session = Session(
            launch=launch,
            narrator=narrator,
            log=log_file or _default_log(launch),
            timeout_s=timeout,
            recipe=recipe,
            as_json=as_json,
            echo=_echo(narrator, api_key) if verbose else _ignore,
            warm=loaded if warm else None,
            api_key=api_key,
            with_screen=top,
        )
        raise typer.Exit(session.run())


def _read_key(file: typer.FileText) -> str:
    key = file.read().strip()
    if not key.isascii() or key.startswith("-") or len(key.split()) != 1:
        raise UsageError(
            f"no usable key in {file.name}",
            "a key is one word of ASCII characters that does not begin with a dash",
            "openssl rand -hex 24 > key.txt",
        )
    return key


def _note(narrator: Narrator, launch: "Launch", loaded: "Loaded | None") -> None:
    """Say what the person may not expect."""
    from kvflow.engine.cpu import demo_model

    if launch.model == str(demo_model.folder()):
        wanted = loaded.recipe.engine.model if loaded else None
        reason = f"the recipe's model, {wanted}, is meant for a GPU" if wanted else "no --model"
        narrator.say(
            f"note: {reason}: serving the built-in demo model (its text is noise, its timing "
            "is real)"
        )
    if launch.device == "cpu" and loaded and loaded.recipe.engine.args:
        narrator.say(
            "note: the recipe's engine.args are meant for a GPU and left out here: "
            f"{', '.join(loaded.recipe.engine.args)}; what SGLang is to be told goes after --"
        )
    if not launch.guarded and not is_loopback(launch.host):
        narrator.say(
            f"warning: {launch.host} is reachable from elsewhere, and no key is asked for: "
            "--api-key-file FILE"
        )
    for path in launch.files:
        narrator.say(f"note: the command reads {path}, which is there while the server runs")


def _print_command(launch: "Launch", *, as_json: bool) -> None:
    if as_json:
        shown = {**asdict(launch), "files": [str(path) for path in launch.files]}
        text = json.dumps({"schema_version": 1, **shown}, default=str)
    else:
        text = launch.shell()
    sys.stdout.write(f"{text}\n")


def _default_log(launch: "Launch") -> Path:
    from kvflow.engine.launch import log

    return log.folder() / f"sglang-{launch.port}.log"


def _ignore(_lines: list[str]) -> None:
    """Without --verbose, SGLang's log stays in its file."""


def _echo(narrator: Narrator, secret: str | None) -> Callable[[list[str]], None]:
    """Show log lines. SGLang logs its settings as they are, the key among them."""

    def show(lines: list[str]) -> None:
        for line in lines:
            narrator.say(line.replace(secret, "***") if secret else line)

    return show
