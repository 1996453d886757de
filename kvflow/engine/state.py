"""The servers that kvflow runs on this machine, by the files that they leave while they run.

`kvflow serve` writes one when its server is healthy and removes it when it ends; others find
servers by them. A file whose process is gone (killed, power lost) is removed by whoever reads it.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import psutil

from kvflow.engine.here import state_folder
from kvflow.engine.processes import start_ticks
from kvflow.errors import KvflowError


class ServerState(msgspec.Struct, frozen=True, kw_only=True):
    """A running server.

    Attributes:
        url: where it answers.
        pid: the process that runs it; SIGTERM to it ends the server.
        created: when that process began, in seconds since the epoch, by the clock of then.
        started_at: when the server became healthy, in seconds since the epoch.
        device: what it runs on: cpu or cuda.
        mode: how much of kvflow is at work in it.
        model: path or name of the model.
        recipe: path of the recipe that it serves, if any.
        start_ticks: when that process began, in ticks since the machine started: with the number
            it names the process, whatever becomes of the clock. None: an older kvflow wrote this.
    """

    url: str
    pid: int
    created: float
    started_at: float
    device: str
    mode: str
    model: str
    recipe: str | None = None
    start_ticks: int | None = None

    @property
    def alive(self) -> bool:
        """Whether the very process that wrote this still runs."""
        if self.start_ticks is None:
            return _runs_kvflow(self.pid)
        return start_ticks(self.pid) == self.start_ticks


def folder() -> Path:
    """Where the files lie: one for each server, named for its port."""
    return state_folder() / "servers"


@contextlib.contextmanager
def announced(state: ServerState) -> Iterator[Path]:
    """Let others find a server for as long as the context lasts.

    Raises:
        KvflowError: the user's state folder cannot be written.
    """
    path = folder() / f"{urlsplit(state.url).port}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, msgspec.json.encode(state))
    except OSError as error:
        hint = "set XDG_STATE_HOME to a folder that can be written"
        raise KvflowError(f"cannot write {path}", error.strerror or str(error), hint) from error
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def running_servers() -> list[ServerState]:
    """The servers that run now, the latest first. Removes the files of those that are gone."""
    found = []
    for path in folder().glob("*.json"):
        try:
            state = msgspec.json.decode(path.read_bytes(), type=ServerState)
        except (OSError, msgspec.DecodeError):
            continue  # just removed, or written by a later version of kvflow
        if state.alive:
            found.append(state)
        else:
            path.unlink(missing_ok=True)
    return sorted(found, key=lambda state: state.started_at, reverse=True)


def _runs_kvflow(pid: int) -> bool:
    try:
        words = psutil.Process(pid).cmdline()
    except psutil.Error:
        return False
    return any(Path(word).name == "kvflow" or word.startswith("kvflow.") for word in words)


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, readable by its owner only (mkstemp: 0600)."""
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(aside, path)
    except OSError:
        os.unlink(aside)
        raise
