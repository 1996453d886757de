"""How much processor time a server takes."""

import contextlib
from collections.abc import Iterator

import psutil


def cpu_seconds(port: int) -> float | None:
    """Processor time, so far, of the server that this process started on a port.

    Returns:
        Seconds over all cores, of the server and everything below it; None if there is none.
    """
    spent = None
    for process in _server(port):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            spent = (spent or 0.0) + times.user + times.system
    return spent


def _server(port: int) -> Iterator[psutil.Process]:
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            words = child.cmdline()
            if "--port" in words and str(port) in words:
                yield from (child, *child.children(recursive=True))
