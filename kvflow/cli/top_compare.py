"""`kvflow top --compare`: two recordings on a screen, as a table, or as JSON."""

import sys
from pathlib import Path

import msgspec

from kvflow.cli.streams import shows_pictures
from kvflow.cli.top_print import Mode, picture_width, write
from kvflow.cli.top_show import screens_needed
from kvflow.errors import UsageError
from kvflow.tui.compare import document, side_at
from kvflow.tui.options import ScreenOptions
from kvflow.tui.recording import Recording
from kvflow.tui.screen import comparison


def compare(
    paths: tuple[Path, Path], mode: Mode | None, speed: float, options: ScreenOptions
) -> None:
    """Compare two recordings. Printed is the last moment that both have.

    Args:
        paths: of the recordings.
        mode: what to print; None for the screen.
        speed: how many times faster than it happened the screen plays them.
        options: how the screen begins.

    Raises:
        UsageError: a file is no recording, or the mode is for one server alone.
        KvflowError: a file cannot be read, or is damaged.
        MissingPart: the screen is not installed.
    """
    if mode is not None and not mode.is_single:
        raise UsageError(
            f"--compare does not go with {mode}", hint="use --once, --json, or the screen"
        )
    a, b = (Recording(path) for path in paths)
    if mode is None:
        with screens_needed():
            from kvflow.tui.screen.compare import run
        run(list(zip(paths, (a, b), strict=True)), speed, options)
        return
    seconds = min(a.duration_s, b.duration_s)
    sides = side_at(paths[0], a, seconds), side_at(paths[1], b, seconds)
    if mode is Mode.JSON:
        text = msgspec.json.format(msgspec.json.encode(document(*sides, seconds))).decode()
        sys.stdout.write(f"{text}\n")
        return
    ellipsis = ".." if options.ascii or not shows_pictures() else "…"
    for line in comparison.picture(*sides, seconds, picture_width(), ellipsis):
        write(line)
