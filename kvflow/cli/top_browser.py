"""`kvflow top --serve`: the screen in a browser."""

import os
import re
import shlex
from typing import Final

import typer

from kvflow.cli.again import again
from kvflow.cli.console import err
from kvflow.cli.top_print import Mode
from kvflow.cli.top_show import screens_needed
from kvflow.errors import UsageError
from kvflow.loopback import is_loopback
from kvflow.tui.options import ScreenOptions

_ADDRESS: Final = re.compile(
    r"(?:(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\[\]]*)):)?(?P<port>[0-9]{1,5})"
)
_NOT_FOR_PAGES: Final = ("serve", "api_key_file")


def browse(
    context: typer.Context,
    address: str,
    mode: Mode | None,
    api_key: str | None,
    options: ScreenOptions,
) -> None:
    """Serve the screen until somebody ends it. Each page runs the same command, without --serve.

    Args:
        context: of the command.
        address: HOST:PORT, or PORT alone for loopback.
        mode: what to print; None for the screen.
        api_key: of the server that is watched.
        options: of the screen, to be refused before anybody opens a page.

    Raises:
        UsageError: the options make no sense together, or the address makes none.
        KvflowError: the address cannot be bound to.
        MissingPart: the screen is not installed.
    """
    host, port = _parsed(address)
    if mode is not None:
        raise UsageError(f"--serve shows the screen and does not go with {mode}")
    if options.record is not None:
        raise UsageError(
            "--record does not go with --serve", "every page would write to it", "press R in a page"
        )
    with screens_needed():
        from kvflow.tui.browser import serve
        from kvflow.tui.screen.keymap import chosen
    chosen(options.config)
    if api_key is not None:
        os.environ["KVFLOW_API_KEY"] = api_key  # pages find it there, and no list of processes does
    if not is_loopback(host):
        _say(
            f"warning: whoever reaches {host}:{port} sees the server and can write files here: "
            "no password is asked for"
        )
    serve(shlex.join(again("top", *_again(context))), host, port, _say)


def _parsed(address: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match["port"]) <= 65_535:
        raise UsageError(
            f"{address!r} is no address to serve at", "HOST:PORT or PORT", "--serve 127.0.0.1:8000"
        )
    return match["v6"] or match["host"] or "127.0.0.1", int(match["port"])


def _again(context: typer.Context) -> list[str]:
    """The options and arguments that were given, for a page's own program."""
    words: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE" or name in _NOT_FOR_PAGES:
            continue
        value = context.params[name]
        if parameter.param_type_name == "option":
            words.append(parameter.opts[0])
        if value is not True:
            words += map(str, value if isinstance(value, tuple) else (value,))
    return words


def _say(line: str) -> None:
    err().print(line, markup=False)
