"""SGLang's log file: written by SGLang itself, followed and quoted by kvflow."""

import os
from pathlib import Path

_TAIL_BYTES = 128 * 1024


def create(path: Path) -> int:
    """An empty log, readable by its owner only, since it can hold prompts.

    Returns:
        A descriptor to write to; every process that inherits it appends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)  # for one that was there before
    return descriptor


def tail(path: Path) -> str:
    """The last 128 KiB of a log."""
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _TAIL_BYTES))
        return file.read().decode(errors="replace")


class Follower:
    """Reads what a log has gained since the last look. One reader, no locking."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._begun = b""

    def lines(self) -> list[str]:
        """The lines that were completed since the last call."""
        *complete, self._begun = (self._begun + self._file.read()).split(b"\n")
        return [line.decode(errors="replace") for line in complete]

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
