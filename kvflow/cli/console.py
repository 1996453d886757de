"""Where a command writes: data on stdout, narration on stderr.

Rich honours NO_COLOR, FORCE_COLOR, TERM=dumb and COLUMNS by itself.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@cache
def out() -> "Console":
    """The console for data (stdout)."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


@cache
def err() -> "Console":
    """The console for narration and errors (stderr)."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)
