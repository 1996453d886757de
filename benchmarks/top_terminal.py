"""What `kvflow top` costs on a terminal: all from the answer of a server to the last character.

    python benchmarks/top_terminal.py
    python benchmarks/top_terminal.py --nodes 10000 --size 200x60 --seconds 30 --json

The real program runs in a pseudo-terminal and watches a server of this script, which tells a tree
of so many nodes, 500 of them changed in each frame. Needs neither engine nor GPU. Counted is the
CPU time of the program alone, once it has the whole tree, so that a busy machine hardly counts.
"""

import argparse
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import msgspec
import psutil
from rich.console import Console
from rich.table import Table
from top_cost import GOAL_MS, GOAL_NODES, Server

GOAL_SHARE = 0.05
"""Of a core, at a frame a second."""
_SETTLES_S = 8.0
_PROGRAM = ("-c", "from kvflow.cli.app import main; main()", "top")


class Row(NamedTuple):
    """One tree. Milliseconds of CPU a refresh, and the share of a core at a frame a second."""

    nodes: int
    size: str
    refreshes: int
    refresh_ms: float
    core: float


class Told:
    """A server's frames over HTTP, and how many were asked for.

    Attributes:
        frames: given so far.
    """

    def __init__(self, nodes: int, seed: int) -> None:
        self.frames = 0
        self._bodies = map(msgspec.json.encode, Server(nodes, seed).frames())

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serve on a free port of loopback; the URL."""
        told = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # connections are kept, as SGLang's are

            def do_GET(self) -> None:
                body = next(told._bodies)
                told.frames += 1
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing: this is no test of the server."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}"
            finally:
                server.shutdown()
                thread.join()


@contextmanager
def on_terminal(url: str, columns: int, lines: int) -> Iterator[psutil.Process]:
    """The program on a terminal of that size, whose characters nobody looks at."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    process = subprocess.Popen(
        [sys.executable, *_PROGRAM, url], stdin=its, stdout=its, stderr=its, env=environment
    )
    os.close(its)
    reader = threading.Thread(target=_drain, args=(ours,))
    reader.start()
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()
        reader.join()
        os.close(ours)


def _drain(terminal: int) -> None:
    with suppress(OSError):  # a terminal without a program ends with an error
        while os.read(terminal, 65_536):
            pass


def measured(nodes: int, size: str, seconds: float, seed: int) -> Row:
    """Watch a tree of so many nodes for so long."""
    columns, _, lines = size.partition("x")
    told = Told(nodes, seed)
    with told.served() as url, on_terminal(url, int(columns), int(lines)) as program:
        time.sleep(_SETTLES_S)
        began, frames = program.cpu_times(), told.frames
        time.sleep(seconds)
        ended, frames = program.cpu_times(), told.frames - frames
    spent_s = ended.user + ended.system - began.user - began.system
    return Row(nodes, size, frames, 1000 * spent_s / frames, spent_s / seconds)


def main() -> int:
    """Measure, print, and exit 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[GOAL_NODES, 50_000])
    parser.add_argument("--size", default="120x40", help="of the terminal")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rows = [measured(one, chosen.size, chosen.seconds, chosen.seed) for one in chosen.nodes]
    if chosen.json:
        print(json.dumps([row._asdict() for row in rows]))
    else:
        table = Table(
            "nodes", "terminal", "refreshes", "ms of CPU a refresh", "of a core", box=None
        )
        for row in rows:
            share = f"{row.core * 100:.1f} %"
            table.add_row(
                f"{row.nodes:,}", row.size, str(row.refreshes), f"{row.refresh_ms:.1f}", share
            )
        Console().print(table)
    missed = [row for row in rows if row.refresh_ms > GOAL_MS or row.core > GOAL_SHARE]
    return int(any(row.nodes <= GOAL_NODES for row in missed))


if __name__ == "__main__":
    sys.exit(main())
