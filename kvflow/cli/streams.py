"""Standard error that can go away, with its terminal or its pipe, while the command goes on."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any


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
        # What could not be written is still in the buffer, and would fail again at the exit.
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stderr.fileno())
