"""SGLang's log file: written by SGLang itself, followed and quoted by kvflow."""

import contextlib
import os
import shutil
from pathlib import Path

import psutil

from kvflow.engine.here import state_folder

_TAIL_BYTES = 128 * 1024
_KEPT_FOLDERS = 4


def folder() -> Path:
    """Where logs lie unless somebody says otherwise."""
    return state_folder() / "log"


def folder_of_process(kind: str) -> Path:
    """The folder for the logs of this very process: another of its kind may run beside it.

    Removes the folders of those that have ended, but for the latest.
    """
    ours = folder() / f"{kind}-{os.getpid()}"
    with contextlib.suppress(OSError):  # not there yet, or just removed by another
        ended = [path for path in folder().iterdir() if _has_ended(path, kind)]
        ended.sort(key=lambda path: path.stat().st_mtime)
        for path in ended[:-_KEPT_FOLDERS]:
            shutil.rmtree(path, ignore_errors=True)
    return ours


def _has_ended(path: Path, kind: str) -> bool:
    found, _, pid = path.name.rpartition("-")
    return found == kind and pid.isdecimal() and not psutil.pid_exists(int(pid))


def create(path: Path) -> int:
    """An empty log, readable by its owner only, since it can hold prompts.

    The one of the last start is kept beside it: what starts a server again is mostly its crash.

    Returns:
        A descriptor to write to; every process that inherits it appends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and not path.is_symlink():  # /dev/stdout is a link
        with contextlib.suppress(OSError):  # a file can be writable in a folder that is not
            path.replace(f"{path}.1")
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
