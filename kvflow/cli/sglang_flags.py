"""Commands that hand words on to SGLang: those that follow --."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from typer.core import TyperCommand

from kvflow.errors import UsageError


class Command(TyperCommand):
    """Leaves the words after -- over, in `ctx.args`, and says so to whoever puts them before it."""

    allow_extra_args = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line.

        Raises:
            UsageError: an option that is none of kvflow's.
        """
        known = [
            name
            for option in self.get_params(ctx)
            for name in (*option.opts, *option.secondary_opts)
        ]
        for word in args[: args.index("--")] if "--" in args else args:
            name = word.partition("=")[0]
            if name.startswith("--") and name not in known:
                raise _no_option(ctx.command_path, word, get_close_matches(name, known))
        return super().parse_args(ctx, args)


def _no_option(command: str, word: str, near: Sequence[str]) -> UsageError:
    meant = f"; or did you mean {' or '.join(near)}?" if near else ""
    return UsageError(
        f"{command} has no option {word.partition('=')[0]}",
        "flags for SGLang stand at the end, after --",
        f"{command} ... -- {word} ...{meant}",
    )
