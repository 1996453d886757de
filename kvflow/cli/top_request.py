"""`kvflow top`: which of its options go together, and what they ask for."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kvflow.cli.streams import LastingStderr
from kvflow.cli.top_print import Mode
from kvflow.errors import UsageError
from kvflow.tui.config import Preset, load
from kvflow.tui.filter import EVERYTHING, parse
from kvflow.tui.options import ScreenOptions
from kvflow.tui.rows import NATURAL, Sort

_DRIVER: Final = "TEXTUAL_DRIVER"
"""Set where something else than a terminal shows the screen, such as a page of --serve."""


def check_what_is_shown(shown: Mapping[str, object], record: Path | None) -> None:
    """Refuse more than one thing to show.

    Args:
        shown: what was given, by the words for it; None for what was not.
        record: a file to record to.

    Raises:
        UsageError: there is more than one, or one that cannot be recorded.
    """
    given = [name for name, value in shown.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} contradict each other", hint="give one of them")
    if record is not None and given and given != ["a URL"]:
        raise UsageError(f"--record does not go with {given[0]}", "it is a recording already")


def mode_of(asked: Sequence[Mode], record: Path | None, *, elsewhere: bool) -> Mode | None:
    """What to print; None for the screen.

    Args:
        asked: the options that were given.
        record: a file to record to.
        elsewhere: the screen is to be shown in browsers, so stdout need not be a terminal.

    Raises:
        UsageError: more than one is asked for, or none where there is no screen to record beside.
    """
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} contradict each other", hint="give one of them")
    if asked:
        if asked[0] is Mode.NOTHING and record is None:
            raise UsageError("--no-tui shows nothing", hint="kvflow top --no-tui --record FILE")
        return asked[0]
    if elsewhere or os.environ.get(_DRIVER) or sys.stdout.isatty():
        return None
    if record is not None:
        raise UsageError(
            "stdout is no terminal that a screen could be shown on",
            hint=f"kvflow top --no-tui --record {record}",
        )
    LastingStderr().write("note: stdout is no terminal: one picture, as with --once\n")
    return Mode.ONCE


def options(
    config: Path | None,
    preset: str | None,
    *,
    interval_s: float | None,
    wanted: str | None,
    sort: str | None,
    plain: bool,
    record: Path | None,
) -> ScreenOptions:
    """What is shown and how: as the options say, else the preset, else as ever.

    Args:
        config: the person's file; None for the usual one.
        preset: a name in it.
        interval_s: seconds between two frames.
        wanted: a filter.
        sort: a column, with - before it for descending.
        plain: no characters beyond ASCII.
        record: a file to record to.

    Raises:
        UsageError: the file, the preset, the filter or the column makes no sense.
    """
    known = load(config)
    chosen = known.preset(preset) if preset is not None else Preset()
    return ScreenOptions(
        interval_s=interval_s or chosen.interval_s or 1.0,
        filter=parse(wanted) if wanted is not None else chosen.filter or EVERYTHING,
        sort=Sort.parse(sort) if sort is not None else chosen.sort or NATURAL,
        ascii=plain,
        record=record,
        panels=chosen.panels,
        config=known,
    )
