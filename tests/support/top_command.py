"""`kvflow top` as it is typed, in this very process."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from support.frame_server import Answer
from support.frames import make_node
from typer.testing import CliRunner, Result

from kvflow.cli import top
from kvflow.engine.state import ServerState
from kvflow.errors import KvflowError

KVFLOW = str(Path(sys.executable).with_name("kvflow"))
NODES = (make_node(1), make_node(2, 1, hits=7), make_node(3))
_app = typer.Typer()
_app.command()(top.command)


def kvflow_top(*arguments: str, **options: Any) -> Result:
    """Run it to its end; `options` are those of typer's runner."""
    return CliRunner().invoke(_app, list(arguments), **options)


def error_of(result: Result) -> KvflowError:
    """The error that it ended with."""
    assert isinstance(result.exception, KvflowError)
    return result.exception


def started(url: str, pid: int | None = None) -> ServerState:
    """What a server that this process runs, or another, has left for others to find."""
    return ServerState(
        url=url,
        pid=pid or os.getpid(),
        created=0,
        started_at=0,
        device="cpu",
        mode="off",
        model="m",
    )


def frames_until_interrupted(*frames: Answer) -> list[Answer | Callable[[int], Answer]]:
    """Answers, and with the one after the last a Ctrl-C to this very process."""

    def interrupt(_since: int) -> Answer:
        os.kill(os.getpid(), signal.SIGINT)
        return frames[-1]

    return [*frames, interrupt]
