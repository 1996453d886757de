"""`kvflow top`: what a server keeps, evicts and brings back, on a screen or as text."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import typer

from kvflow.cli.run import DEFAULT_URL, read_api_key
from kvflow.errors import MissingPart, UsageError

if TYPE_CHECKING:
    from kvflow.cli.top_print import Mode
    from kvflow.cli.top_session import Session
    from kvflow.engine.state import ServerState
    from kvflow.telemetry.sampler import Sampler
    from kvflow.tui.options import ScreenOptions
    from kvflow.tui.source import Source

DEMO: Final = Path(__file__).parents[1] / "tui" / "demo.kvtrace"
"""A recording of the CPU engine under a workflow, made by scripts/record_demo.py."""

_LOOPBACK = ("127.0.0.1", "::1", "localhost")

_LEAST_INTERVAL_S = 0.25
_SHOWN = 20


def command(
    url: Annotated[
        str | None,
        typer.Argument(
            help="A server with kvflow at work.",
            show_default="the one that kvflow serve runs, else http://127.0.0.1:30000",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", "-1", help="Print one picture and end.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and end.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Print a JSON document a line, for ever.")
    ] = False,
    stat: Annotated[
        bool, typer.Option("--stat", help="Print a line of figures a tick, for ever.")
    ] = False,
    interval: Annotated[
        float,
        typer.Option(
            "--interval", "-d", min=_LEAST_INTERVAL_S, metavar="SECONDS", help="Between two frames."
        ),
    ] = 1.0,
    wanted: Annotated[
        str,
        typer.Option(
            "--filter", "-f", metavar="WORDS", help="Nodes to show, such as 'state:host steps<3'."
        ),
    ] = "",
    sort: Annotated[
        str, typer.Option(metavar="COLUMN", help="Sort by a column; -COLUMN for descending.")
    ] = "id",
    top: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Rows to print.", show_default=f"{_SHOWN}; with --json all"
        ),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Record what is seen, to replay it.")
    ] = None,
    no_tui: Annotated[
        bool, typer.Option("--no-tui", help="With --record: show nothing, only record.")
    ] = False,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show a recording instead of a server.")
    ] = None,
    speed: Annotated[
        float, typer.Option(min=0.01, help="With --replay or --demo: how many times faster.")
    ] = 1.0,
    demo: Annotated[
        bool, typer.Option("--demo", help="Show the recording that comes with kvflow.")
    ] = False,
    plain: Annotated[bool, typer.Option("--ascii", help="No characters beyond ASCII.")] = False,
    api_key_file: Annotated[
        typer.FileText | None,
        typer.Option(
            help="File with the API key of the server; - is stdin.", show_default="KVFLOW_API_KEY"
        ),
    ] = None,
) -> None:
    """Watch what a server keeps, evicts and brings back. Looking changes nothing in it.

    For example: kvflow top --demo, or kvflow top --stat -d 5
    """
    from kvflow.cli.top_print import Mode, Printer
    from kvflow.cli.top_session import Session
    from kvflow.tui.filter import parse
    from kvflow.tui.options import ScreenOptions
    from kvflow.tui.rows import Sort, View

    options = ScreenOptions(interval, parse(wanted), Sort.parse(sort), plain, record)
    asked = {
        Mode.ONCE: once,
        Mode.JSON: as_json,
        Mode.WATCH: watch,
        Mode.STAT: stat,
        Mode.NOTHING: no_tui,
    }
    _check_what_is_shown(url=url, record=record, replay=replay, demo=demo)
    mode = _mode([mode for mode, is_asked in asked.items() if is_asked], record)
    session = None
    if mode is not None:
        most = _SHOWN if top is None and mode is not Mode.JSON else top
        view = View(options.filter, options.sort)
        session = Session(Printer(mode, view, most, plain), record)
    if replay is not None or demo:
        _replay(session, replay, speed, options)
    else:
        _watch(session, url, read_api_key(api_key_file), options)


def show(url: str, api_key: str | None) -> None:
    """Show a live server on the screen until somebody quits."""
    from kvflow.tui.options import ScreenOptions

    _watch(None, url, api_key, ScreenOptions())


def _check_what_is_shown(
    *, url: str | None, record: Path | None, replay: Path | None, demo: bool
) -> None:
    shown = {"a URL": url, "--replay": replay, "--demo": demo or None}
    given = [name for name, value in shown.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} contradict each other", hint="give one of them")
    if record is not None and given and url is None:
        raise UsageError(f"--record does not go with {given[0]}", "it is a recording already")


def _mode(asked: "Sequence[Mode]", record: Path | None) -> "Mode | None":
    """What to print; None for the screen."""
    from kvflow.cli.top_print import Mode

    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} contradict each other", hint="give one of them")
    if asked:
        if asked[0] is Mode.NOTHING and record is None:
            raise UsageError("--no-tui shows nothing", hint="kvflow top --no-tui --record FILE")
        return asked[0]
    if sys.stdout.isatty():
        return None
    if record is not None:
        raise UsageError(
            "stdout is no terminal that a screen could be shown on",
            hint=f"kvflow top --no-tui --record {record}",
        )
    sys.stderr.write("note: stdout is no terminal: one picture, as with --once\n")
    return Mode.ONCE


def _replay(
    session: "Session | None", path: Path | None, speed: float, options: "ScreenOptions"
) -> None:
    """Show a recording; the one that comes with kvflow without a path, again and again."""
    from kvflow.tui.recording import Recording
    from kvflow.tui.replay import ReplaySource

    recording = Recording(path or DEMO)
    if session is not None:
        session.read(recording)
    else:
        _run()(ReplaySource(recording, speed, endless=path is None), None, options)


def _watch(
    session: "Session | None", url: str | None, api_key: str | None, options: "ScreenOptions"
) -> None:
    """Show a live server."""
    from kvflow.engine.state import running_servers
    from kvflow.tui.live import LiveSource

    servers = running_servers()
    source = LiveSource(
        url or _only(servers), api_key, options.interval_s, strict=session is not None
    )
    machine = _machine(source.label, servers)
    if session is not None:
        session.printer.machine = machine
        session.watch(source)
    elif machine is None:
        _run()(source, None, options)
    else:
        show = _run()
        with machine:
            show(source, machine, options)


def _only(servers: "Sequence[ServerState]") -> str:
    """The URL of the server that runs here."""
    urls = [server.url for server in servers]
    if len(urls) > 1:
        raise UsageError(
            f"{len(urls)} servers run here: {', '.join(urls)}",
            hint=f"say which: kvflow top {urls[0]}",
        )
    return urls[0] if urls else DEFAULT_URL


def _machine(url: str, servers: "Sequence[ServerState]") -> "Sampler | None":
    """What reads this machine, if the server runs on it."""
    from kvflow.telemetry.host import PsutilHost
    from kvflow.telemetry.nvml import open_gpus
    from kvflow.telemetry.sampler import Sampler

    if urlsplit(url).hostname not in _LOOPBACK:
        return None
    pid = next((server.pid for server in servers if server.url == url), None)
    return Sampler(open_gpus(), PsutilHost(pid))


def _run() -> "Callable[[Source, Sampler | None, ScreenOptions], None]":
    """The screens, which take longer to import than all else.

    Raises:
        MissingPart: they are not installed.
    """
    try:
        from kvflow.tui.screen.app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "textual":
            raise
        raise MissingPart(
            "the screens of kvflow top are not installed",
            f"there is no module {error.name}",
            "pip install 'kvflow[tui]', or use --once, --stat, --json or --watch",
        ) from error
    return lambda source, telemetry, options: run(source, telemetry=telemetry, options=options)
