"""The screen of `kvflow serve --top`, in a process of its own: no failure of it ends a server."""

import os
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kvflow.cli.again import again

_ENDS_S = 5.0
_BACK_TO_LINES = "\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1049l\x1b[?25h"
"""No mouse, no bracketed paste, no second screen, a cursor."""


@contextmanager
def showing(url: str, api_key: str | None) -> Iterator["subprocess.Popen[bytes]"]:
    """Have `kvflow top` on this terminal for as long as the context lasts.

    Args:
        url: of the server.
        api_key: that it asks for; goes through the environment, which nobody else can read.

    Yields:
        The process, which ends with 0 when somebody has left the screen.
    """
    lines = termios.tcgetattr(sys.stdin.fileno())
    process = subprocess.Popen(
        again("top", url),
        env=os.environ if api_key is None else {**os.environ, "KVFLOW_API_KEY": api_key},
    )
    try:
        yield process
    finally:
        _end(process)
        if process.returncode < 0:  # killed, and so without a chance to do this itself
            with suppress(OSError, termios.error):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, lines)
                sys.stdout.write(_BACK_TO_LINES)
                sys.stdout.flush()


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_ENDS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def check() -> None:
    """Find what would keep the screen from being shown, before there is anything to show.

    Raises:
        KvflowError: the screens are not installed, or the person's settings make no sense.
    """
    from kvflow.cli.top_show import screens_needed
    from kvflow.tui.config import load

    with screens_needed():
        from kvflow.tui.screen import app, keymap
    del app  # needed for what it imports
    keymap.chosen(load(None))
