"""`kvflow top`: from what was asked for to a source, and to who shows it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kvflow.cli.run import DEFAULT_URL
from kvflow.cli.top_machine import machine_of
from kvflow.cli.top_session import Session
from kvflow.engine.state import ServerState, running_servers
from kvflow.errors import MissingPart, UsageError
from kvflow.telemetry.sampler import Sampler
from kvflow.tui.live import LiveSource
from kvflow.tui.options import ScreenOptions
from kvflow.tui.recording import Recording
from kvflow.tui.replay import ReplaySource
from kvflow.tui.source import Source

DEMO: Final = Path(__file__).parents[1] / "tui" / "demo.kvtrace"
"""A recording of the CPU engine under a workflow, made by scripts/record_demo.py."""

_OF_THE_SCREENS = ("textual", "textual_serve", "aiohttp")


def replay(
    session: Session | None, path: Path | None, speed: float, options: ScreenOptions
) -> None:
    """Show a recording; the one that comes with kvflow without a path, again and again."""
    recording = Recording(path or DEMO)
    if session is not None:
        session.read(recording)
    else:
        _screens()(ReplaySource(recording, speed, endless=path is None), None, options)


def watch(
    session: Session | None, url: str | None, api_key: str | None, options: ScreenOptions
) -> None:
    """Show a live server."""
    url = url or _only(running_servers())
    source = LiveSource(url, api_key, options.interval_s, strict=session is not None)
    machine = machine_of(source.label)
    if session is not None:
        session.printer.machine = machine
        session.watch(source)
    elif machine is None:
        _screens()(source, None, options)
    else:
        show = _screens()
        with machine:
            show(source, machine, options)


def _only(servers: Sequence[ServerState]) -> str:
    """The URL of the server that runs here."""
    urls = [server.url for server in servers]
    if len(urls) > 1:
        raise UsageError(
            f"{len(urls)} servers run here: {', '.join(urls)}",
            hint=f"say which: kvflow top {urls[0]}",
        )
    return urls[0] if urls else DEFAULT_URL


def _screens() -> Callable[[Source, Sampler | None, ScreenOptions], None]:
    """The screens, which take longer to import than all else.

    Raises:
        MissingPart: they are not installed.
    """
    with screens_needed():
        from kvflow.tui.screen.app import run
    return lambda source, telemetry, options: run(source, telemetry=telemetry, options=options)


@contextmanager
def screens_needed() -> Iterator[None]:
    """Import in it what draws on a terminal.

    Raises:
        MissingPart: what is needed for that is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _OF_THE_SCREENS:
            raise
        raise MissingPart(
            "the screens of kvflow top are not installed",
            f"there is no module {error.name}",
            "pip install 'kvflow[tui]', or use --once, --stat, --json or --watch",
        ) from error
