"""The `kvflow` command: gathers the subcommands and turns errors into exit codes."""

import sys

import typer

from kvflow import __version__
from kvflow.cli import bench, recipe, run, serve, sglang_flags, top
from kvflow.cli.streams import LastingStderr, spare_stdout
from kvflow.errors import ExitCode, KvflowError

app = typer.Typer(
    name="kvflow",
    help="Workflow-aware KV caching for LLM agents, on stock SGLang.",
    epilog="Start here: kvflow serve --recipe peer.yaml, then kvflow run peer.yaml",
    no_args_is_help=True,
    rich_markup_mode=None,  # Rich takes longer to import than all else that --help needs
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve", cls=sglang_flags.Command)(serve.command)
app.command("run")(run.command)
app.command("top")(top.command)
app.add_typer(bench.app, name="bench")
app.add_typer(recipe.app, name="recipe")


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"kvflow {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", "-V", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Workflow-aware KV caching for LLM agents, on stock SGLang."""


def main() -> None:
    """Run the command line; an expected failure ends as three lines and its exit code."""
    spare_stdout()
    try:
        app()
    except KvflowError as error:
        LastingStderr().write(f"{error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
