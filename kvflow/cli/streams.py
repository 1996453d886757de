"""Standard streams that go away, or lack characters, while the command goes on."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

_PICTURES = "│▼█…"  # of the characters that pictures are drawn with


def spare_stdout() -> None:
    """Let stdout show ? for a character that it lacks, which else ends the command."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def shows_pictures() -> bool:
    """Whether stdout has the characters of pictures, or ASCII has to do."""
    try:
        _PICTURES.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def forget(stream: TextIO) -> None:
    """Nobody is there any more: what is left in its buffer must not fail again at the exit."""
    with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


class LastingStderr:
    """Writes to standard error, and to nowhere once nobody is there. Rich takes it for a file."""

    def write(self, text: str) -> int:
        """Write it if that is possible."""
        with _silenced_by_failure():
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        """Likewise."""
        with _silenced_by_failure():
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        """Everything else as it is."""
        return getattr(sys.stderr, name)


@contextlib.contextmanager
def _silenced_by_failure() -> Iterator[None]:
    try:
        yield
    except OSError:
        forget(sys.stderr)
