"""A server that tells frames, for tests: real HTTP on loopback, every answer by hand."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import msgspec

from kvflow.frames import Frame

Answer = Frame | bytes | int | str
"""A frame, a body, a status with a body in JSON, or "hang up"."""


@dataclass
class FrameServer:
    """Answers /kvflow/snapshot with one answer after the other, the last one for ever.

    Answers may be functions of the `since` that was asked for.
    """

    answers: list[Answer | Callable[[int], Answer]]
    api_key: str | None = None
    asked: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    @contextlib.contextmanager
    def running(self) -> Iterator["FrameServer"]:
        """Answer on a free port of loopback for as long as the context lasts."""
        fake = self

        class Handler(_Handler):
            server_of_frames = fake

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server_of_frames: FrameServer

    def log_message(self, *args: object) -> None:
        """Tests look at what was asked, not at a log."""

    def do_GET(self) -> None:
        fake, asked = self.server_of_frames, urlsplit(self.path)
        if fake.api_key and self.headers.get("Authorization") != f"Bearer {fake.api_key}":
            self._reply(401, b'{"error": "Unauthorized"}')
            return
        if asked.path != "/kvflow/snapshot":
            self._reply(404, b'{"detail": "Not Found"}')
            return
        query = {name: values[0] for name, values in parse_qs(asked.query).items()}
        answer = fake.answers[min(len(fake.asked), len(fake.answers) - 1)]
        fake.asked.append(query)
        if callable(answer):
            answer = answer(int(query["since"]))
        if isinstance(answer, Frame):
            self._reply(200, msgspec.json.encode(answer))
        elif isinstance(answer, int):
            self._reply(answer, b'{"detail": "as the test wants it"}')
        elif isinstance(answer, bytes):
            self._reply(200, answer)

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
