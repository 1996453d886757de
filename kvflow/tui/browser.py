"""`kvflow top` in a browser: a web server that starts the program anew for each page.

What a page shows comes over a websocket, and so do its keys. Browsers let any site open one, so
pages of other sites are refused here; who may reach the address is not asked.
"""

import asyncio
import logging
import signal
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.server import Server

from kvflow.errors import ExitCode, KvflowError
from kvflow.loopback import is_loopback


class Browser(Server):
    """Shows a command's screen to whoever opens the page.

    Args:
        command: to a shell; run once a page, with Textual's driver for the web.
        host: address to bind to.
        port: to bind to.
        say: tells the person a line.

    Attributes:
        terminated: SIGTERM has ended it, not the person.
    """

    def __init__(self, command: str, host: str, port: int, say: Callable[[str], None]) -> None:
        super().__init__(command, host, port, title="kvflow top")
        self.terminated = False
        self._say = say
        self._pages: set[asyncio.Task[Any]] = set()

    def initialize_logging(self) -> None:
        """Only what goes wrong is worth a line."""
        logging.basicConfig(level=logging.WARNING, format="%(message)s")

    async def on_startup(self, app: web.Application) -> None:
        """Say where the page is."""
        del app
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._terminate)
        host = f"[{self.host}]" if ":" in self.host else self.host
        self._say(f"kvflow top for browsers: http://{host}:{self.port}; Ctrl-C ends it")

    def _terminate(self) -> None:
        self.terminated = True
        self.request_exit()

    async def on_shutdown(self, app: web.Application) -> None:
        """End the programs of pages that are open: nobody should wait for them to be closed."""
        del app
        for page in self._pages:
            page.cancel()

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        """The page. It finds the rest where it was found itself, behind whatever tunnel that is."""
        self._refuse_others(request)
        self.public_url = f"http://{request.host}"
        return await super().handle_index(request)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A page's keys, and what it shows."""
        self._refuse_others(request)
        page = asyncio.current_task()
        assert page is not None
        self._pages.add(page)
        try:
            return await super().handle_websocket(request)
        finally:
            self._pages.discard(page)

    def _refuse_others(self, request: web.Request) -> None:
        """Pages of other sites, and names that only lead here (DNS rebinding)."""
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            raise web.HTTPForbidden(text="this page belongs to another site\n")
        if is_loopback(self.host) and not is_loopback(urlsplit(f"//{request.host}").hostname or ""):
            raise web.HTTPForbidden(text=f"{request.host} is no name of this machine\n")


def serve(command: str, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C, as a screen is left with it.

    Args:
        command: see `Browser`.
        host: address to bind to.
        port: to bind to.
        say: tells the person a line.

    Raises:
        KvflowError: the address cannot be bound to.
        SystemExit: SIGTERM came.
    """
    browser = Browser(command, host, port, say)
    try:
        browser.serve()
    except OSError as error:
        raise KvflowError(
            f"cannot listen at {host}:{port}", error.strerror or str(error), "give another port"
        ) from error
    if browser.terminated:
        raise SystemExit(ExitCode.TERMINATED)
