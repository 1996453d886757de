"""`kvflow top`: what a server keeps, evicts and brings back, on a screen or as text."""

from pathlib import Path
from typing import Annotated, Final

import typer

from kvflow.cli.run import read_api_key
from kvflow.tui.source import LEAST_INTERVAL_S, MOST_INTERVAL_S

_SHOWN: Final = 20


def command(
    context: typer.Context,
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
        float | None,
        typer.Option(
            "--interval",
            "-d",
            min=LEAST_INTERVAL_S,
            max=MOST_INTERVAL_S,
            metavar="SECONDS",
            help="Between two frames.",
            show_default="1",
        ),
    ] = None,
    wanted: Annotated[
        str | None,
        typer.Option(
            "--filter", "-f", metavar="WORDS", help="Nodes to show, such as 'state:host steps<3'."
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Sort by a column; -COLUMN for descending.",
            show_default="id",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Rows to print.", show_default=f"{_SHOWN}; with --json all"
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Record what is seen to a new file, to replay it."),
    ] = None,
    no_tui: Annotated[
        bool, typer.Option("--no-tui", help="With --record: show nothing, only record.")
    ] = False,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show a recording instead of a server.")
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A B", help="Show two recordings side by side, and what differs."),
    ] = None,
    speed: Annotated[
        float, typer.Option(min=0.01, help="Of recordings: how many times faster they are played.")
    ] = 1.0,
    demo: Annotated[
        bool, typer.Option("--demo", help="Show the recording that comes with kvflow.")
    ] = False,
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Show the screen in browsers; PORT alone: loopback."
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Filter, sort, panels and interval by name.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Presets and keys.",
            show_default="top.yaml in the user's folder of settings",
        ),
    ] = None,
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
    from kvflow.cli import top_browser, top_compare, top_request, top_show
    from kvflow.cli.streams import shows_pictures
    from kvflow.cli.top_print import Mode, Printer
    from kvflow.cli.top_session import Session
    from kvflow.tui.rows import View

    asked = {
        Mode.ONCE: once,
        Mode.JSON: as_json,
        Mode.WATCH: watch,
        Mode.STAT: stat,
        Mode.NOTHING: no_tui,
    }
    shown = {"a URL": url, "--replay": replay, "--compare": compare, "--demo": demo or None}
    top_request.check_what_is_shown(shown, record)
    options = top_request.options(
        config, preset, interval_s=interval, wanted=wanted, sort=sort, plain=plain, record=record
    )
    modes = [mode for mode, is_asked in asked.items() if is_asked]
    mode = top_request.mode_of(modes, record, elsewhere=serve is not None)
    if serve is not None:
        top_browser.browse(context, serve, mode, read_api_key(api_key_file), options)
    elif compare is not None:
        top_compare.compare(compare, mode, speed, options)
    else:
        session = None
        if mode is not None:
            most = _SHOWN if top is None and mode is not Mode.JSON else top
            view = View(options.filter, options.sort)
            in_ascii = plain or not shows_pictures()
            session = Session(Printer(mode, view, most, in_ascii), record)
        if replay is not None or demo:
            top_show.replay(session, replay, speed, options)
        else:
            top_show.watch(session, url, read_api_key(api_key_file), options)
