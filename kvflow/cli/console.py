"""Where a command writes: data on stdout, narration on stderr.

Rich honours NO_COLOR, FORCE_COLOR, TERM=dumb and COLUMNS by itself.
"""

from functools import cache
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from rich.console import Console


@cache
def out() -> "Console":
    """The console for data (stdout). Raises BrokenPipeError once nobody reads."""
    from kvflow.cli.pipes import DataConsole

    return DataConsole(highlight=False, soft_wrap=True)


@cache
def err() -> "Console":
    """The console for narration and errors (stderr). Whoever closes it silences it, no more."""
    from rich.console import Console

    from kvflow.cli.streams import LastingStderr

    return Console(file=cast("IO[str]", LastingStderr()), highlight=False, soft_wrap=True)
