"""`kvflow run`: walk a workflow against a server, and say where the time went."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from kvflow.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from kvflow.cli.run_report import Outcome
    from kvflow.recipe.load import Loaded

DEFAULT_URL = "http://127.0.0.1:30000"
_RECIPES = "the recipe's"


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of a shipped one.")],
    url: Annotated[
        str | None,
        typer.Argument(
            help="An SGLang or OpenAI-compatible server.",
            show_default=f"the one that kvflow serve runs, else {DEFAULT_URL}",
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, help="How many runs.", show_default=_RECIPES)
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Runs in flight at once.", show_default=_RECIPES)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Draws branches, lengths and tasks; the same seed sends the same prompts.",
            show_default=_RECIPES,
        ),
    ] = None,
    client: Annotated[
        str | None,
        typer.Option(
            help="Name of the application in the tags.", show_default="the name of the recipe"
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="What one call may take in all.")
    ] = 600.0,
    api_key_file: Annotated[
        typer.FileText | None,
        typer.Option(
            help="File with the API key of the server; - is stdin.", show_default="KVFLOW_API_KEY"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything measured, as JSON.")] = False,
) -> None:
    """Walk a workflow against a server: every call of every run, and where the time went.

    For example: kvflow run peer.yaml --runs 8 --concurrency 2
    """
    import asyncio

    from kvflow.cli import run_report
    from kvflow.cli.ending import Ending
    from kvflow.client.drive import Settings
    from kvflow.recipe.load import find, load

    loaded = load(find(recipe))
    workload = loaded.recipe.workload
    settings = Settings(
        client=client or loaded.recipe.name,
        runs=runs or workload.runs,
        concurrency=concurrency or workload.concurrency,
        seed=workload.seed if seed is None else seed,
    )
    outcome = run_report.Outcome(loaded, settings)
    where, api_key = url or _default_url(loaded), read_api_key(api_key_file)
    with Ending() as ending:
        try:
            asyncio.run(_drive(outcome, where, api_key, timeout))
        except (KeyboardInterrupt, asyncio.CancelledError):
            outcome.interrupted = True
        run_report.write(outcome, as_json)
    if outcome.interrupted:
        raise typer.Exit(ending.exit_status)
    if outcome.result.failures:
        raise typer.Exit(ExitCode.FAILURE)


async def _drive(outcome: "Outcome", url: str, api_key: str | None, timeout_s: float) -> None:
    import time

    from kvflow.cli.run_progress import progress
    from kvflow.client.drive import drive
    from kvflow.client.server import connect

    async with connect(url, api_key=api_key, timeout_s=timeout_s) as server:
        outcome.server = server.info
        began = time.perf_counter()
        try:
            async with progress(outcome) as tally:
                await drive(outcome.loaded, server, outcome.settings, [outcome.ledger, tally])
        finally:
            outcome.seconds = time.perf_counter() - began


def _default_url(loaded: "Loaded") -> str:
    """The server that runs here: the one with this recipe if there is one, else the only one."""
    from kvflow.engine.state import running_servers

    servers = running_servers()
    here = [state for state in servers if state.recipe and _same(state.recipe, loaded.path)]
    urls = [state.url for state in here or servers]
    if len(urls) > 1:
        raise UsageError(
            f"{len(urls)} servers run here: {', '.join(urls)}",
            hint=f"say which: kvflow run {loaded.path} {urls[0]}",
        )
    return urls[0] if urls else DEFAULT_URL


def _same(one: str, other: Path) -> bool:
    return Path(one).resolve() == other.resolve()


def read_api_key(file: TextIO | None) -> str | None:
    """The key from the file if one was given, else from the environment, else none."""
    source = "KVFLOW_API_KEY" if file is None else file.name
    unusable = UsageError(f"no usable API key in {source}", "a key is one word of ASCII characters")
    try:
        key = (os.environ.get("KVFLOW_API_KEY", "") if file is None else file.read()).strip()
    except UnicodeDecodeError:
        raise unusable from None
    if not key and file is None:
        return None
    if not key or not key.isascii() or len(key.split()) > 1:
        raise unusable
    return key
