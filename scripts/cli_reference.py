"""Write docs/cli.md from the command line itself. `--check` only compares."""

import sys
from pathlib import Path

import typer.main
from typer.cli import get_docs_for_click

from kvflow.cli.app import app
from kvflow.errors import ExitCode

TARGET = Path(__file__).parents[1] / "docs" / "cli.md"
_MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILURE: "something failed while it ran; what was measured is kept",
    ExitCode.USAGE: "flags, a recipe or a configuration make no sense",
    ExitCode.UNREACHABLE: "no server there, or not one that kvflow can talk to",
    ExitCode.AUTH: "the server wants a key, or another one",
    ExitCode.CHECK_FAILED: "a check that was asked for failed",
    ExitCode.MISSING: "a GPU or an optional part is not on this machine",
    ExitCode.INTERRUPTED: "Ctrl-C",
    ExitCode.TERMINATED: "ended by SIGTERM",
    ExitCode.HANGUP: "its terminal was closed",
}


def render() -> str:
    """The reference as Markdown."""
    command = typer.main.get_command(app)
    context = command.make_context("kvflow", ["recipe", "list"], resilient_parsing=True)
    body = get_docs_for_click(obj=command, ctx=context, name="kvflow", title="The command line")
    codes = "\n".join(f"| {code.value} | {_MEANINGS[code]} |" for code in ExitCode)
    return f"{body.strip()}\n\n## Exit codes\n\n| code | meaning |\n|---|---|\n{codes}\n"


def main() -> int:
    """Write, or with --check say whether the file is up to date (exit 1 if not)."""
    text = render()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text)
        return 0
    if TARGET.read_text() == text:
        return 0
    print(f"{TARGET} is out of date: python scripts/cli_reference.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
