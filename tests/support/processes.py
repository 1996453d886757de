"""Waiting for processes, by what can be seen of them."""

import contextlib
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

PATIENCE_S = 30.0


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait for something that happens in another process."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(0.02)


def processes_listed_in(path: Path) -> list[psutil.Process]:
    """The processes that wrote their numbers to a file, without those that are gone already."""
    wait_until(path.exists, f"{path}")
    found = []
    for pid in json.loads(path.read_text()):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def still_running(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended; a zombie has."""
    alive = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive
