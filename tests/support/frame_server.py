"""A server that tells frames, for tests: real HTTP on loopback, every answer by hand."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import msgspec
from support.loopback import ANY_PORT, Handler, serving

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
        server = _Server(ANY_PORT, _Handler)
        server.fake = self
        with serving(server) as self.url:
            yield self


class _Server(ThreadingHTTPServer):
    fake: FrameServer


class _Handler(Handler):
    server: _Server

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server wants
        fake, asked = self.server.fake, urlsplit(self.path)
        if fake.api_key and self.headers.get("Authorization") != f"Bearer {fake.api_key}":
            self.reply({"error": "Unauthorized"}, 401)
            return
        if asked.path != "/kvflow/snapshot":
            self.reply({"detail": "Not Found"}, 404)
            return
        query = {name: values[0] for name, values in parse_qs(asked.query).items()}
        answer = fake.answers[min(len(fake.asked), len(fake.answers) - 1)]
        fake.asked.append(query)
        if callable(answer):
            answer = answer(int(query["since"]))
        if isinstance(answer, Frame):
            self.reply(msgspec.json.encode(answer))
        elif isinstance(answer, int):
            self.reply({"detail": "as the test wants it"}, answer)
        elif isinstance(answer, bytes):
            self.reply(answer)
