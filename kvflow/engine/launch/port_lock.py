"""One server of kvflow at a port, from the moment when its start begins.

SGLang listens when it has loaded everything, minutes after its start. Until then the port itself
keeps nobody away from it, nor from the files that are named for it.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from kvflow.engine.here import state_folder
from kvflow.errors import KvflowError


@contextlib.contextmanager
def held(port: int) -> Iterator[None]:
    """Keep other servers of this user and machine from a port for as long as the context lasts.

    Raises:
        KvflowError: one of them has it.
        OSError: the state folder cannot be written.
    """
    path = state_folder() / "launch" / f"{port}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path, port) as file:
        file.truncate(0)  # of one that was killed
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _locked(path: Path, port: int) -> IO[str]:
    """The file, locked until it is closed; its holder may have removed what was opened first."""
    while True:
        file = path.open("a+")
        try:
            _lock(file, port)
            if _is_at(file, path):
                return file
        except KvflowError:
            file.close()
            raise
        file.close()


def _lock(file: IO[str], port: int) -> None:
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        pid = file.read()
        raise KvflowError(
            f"port {port} is in use",
            f"kvflow starts a server there (pid {pid})",
            f"end it with kill {pid}, or take another: --port {port + 1}",
        ) from None
    except OSError:
        pass  # a file system without locks is no reason to start nothing


def _is_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
