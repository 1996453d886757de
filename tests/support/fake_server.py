"""A model server for tests: real HTTP on loopback, no model.

It speaks SGLang's dialect or plain OpenAI's. Its tokens are bytes (id = byte + 10, so that ids
below 10 stand for control tokens), its answers are fixed, and it reports as cached what a prompt
shares with an earlier one.
"""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any

from support.loopback import ANY_PORT, Handler, serving

FIRST_ID = 10
ANSWER = "a fine answer"
MODEL = "fake-model"
PATIENCE_S = 20.0


@dataclass(frozen=True)
class Seen:
    """A request to generate, as it came."""

    path: str
    body: dict[str, Any]
    authorization: str | None

    @property
    def params(self) -> dict[str, Any]:
        sampling = self.body.get("sampling_params", self.body)
        return dict(sampling["custom_params"] or {}) if "custom_params" in sampling else {}

    @property
    def agent(self) -> str:
        return str(self.params["kvflow"]["agent"])


@dataclass
class FakeServer:
    """What the server is to do, and what it saw.

    Its dialect is sglang, openai, or website: no model server at all.

    A fault is asked for with each request to generate. It is an HTTP status to answer with, or one
    of: garbage (an event that is no JSON), lacking (an event without its fields), html (no stream),
    cut (the connection ends within the stream), endless (the stream ends early, properly), abort
    (SGLang's), error (an error event), drop (no answer at all), hang (no answer before `release`),
    interrupt (Ctrl-C to this very process, then hang).
    """

    dialect: str = "sglang"
    api_key: str | None = None
    fault: Callable[[Seen], int | str | None] = lambda seen: None
    answer: str = ANSWER
    complaint: str = "out of order"  # with a status that is an error
    incremental: bool = False  # SGLang's --incremental-streaming-output
    kvflow: bool = False  # whether it has kvflow's control plane
    end_statuses: list[int] = field(default_factory=list)  # of the first ends of runs, then 200
    models: tuple[str, ...] = (MODEL,)
    host_tokens: int = 0  # of what is cached, this many are reported in host memory
    meet: threading.Barrier | None = None  # calls go on when so many have come
    seen: list[Seen] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)  # paths of requests to end a run
    release: threading.Event = field(default_factory=threading.Event)
    url: str = ""
    _prompts: list[list[int]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def running(self) -> Iterator["FakeServer"]:
        """Answer on a free port of loopback for as long as the context lasts."""
        server = _Server(ANY_PORT, _Handler)
        server.fake = self
        with serving(server) as self.url:
            try:
                yield self
            finally:
                self.release.set()

    def cached(self, ids: list[int]) -> int:
        """How much of a prompt was seen before; from now on, all of it was."""
        with self._lock:
            shared = max((_common(ids, other) for other in self._prompts), default=0)
            self._prompts.append(ids)
        return shared


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128
    fake: FakeServer

    def __init__(self, *args: Any) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Break off every connection first, kept alive or in use."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        super().server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients of these tests break off on purpose: nothing to report."""


class _Handler(Handler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = PATIENCE_S
    server: _Server

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server wants
        fake = self.server.fake
        if self._refused():
            return
        if self.path == "/v1/models" and fake.dialect != "website":
            owner = "sglang" if fake.dialect == "sglang" else "somebody"
            cards = [{"id": model, "owned_by": owner} for model in fake.models]
            self.reply({"object": "list", "data": cards})
        elif self.path == "/server_info" and fake.dialect == "sglang":
            self.reply({"version": "0.5.23", "internal_states": [{}], "model_path": MODEL})
        else:
            self.reply({"detail": "Not Found"}, 404)

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server wants
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._refused():
            return
        sglang = self.server.fake.dialect == "sglang"
        if self.path == "/tokenize" and sglang:
            ids = to_ids(body["prompt"])
            self.reply({"tokens": ids, "count": len(ids), "max_model_len": 4096})
        elif self.path == "/detokenize" and sglang:
            self.reply({"text": to_text(body["tokens"])})
        elif self.path == "/v1/chat/completions" or (self.path == "/generate" and sglang):
            self._generate(Seen(self.path, body, self.headers.get("Authorization")))
        elif self.path.startswith("/kvflow/runs/"):
            fake = self.server.fake
            fake.ends.append(self.path)
            status = fake.end_statuses.pop(0) if fake.end_statuses else 200
            self.reply({}, status if fake.kvflow else 404)
        else:
            self.reply({"detail": "Not Found"}, 404)

    def _refused(self) -> bool:
        key = self.server.fake.api_key
        if key is None or self.headers.get("Authorization") == f"Bearer {key}":
            return False
        self.reply({"error": "Unauthorized"}, 401)
        return True

    def _generate(self, seen: Seen) -> None:
        fake = self.server.fake
        fake.seen.append(seen)
        if fake.meet is not None:
            fake.meet.wait(PATIENCE_S)
        fault = fake.fault(seen)
        if isinstance(fault, int):
            self.reply({"object": "error", "message": fake.complaint, "code": fault}, fault)
        elif fault == "html":
            self.reply("<html>hello</html>", content_type="text/html")
        elif fault == "drop":
            self.close_connection = True
        elif fault in ("hang", "interrupt"):
            if fault == "interrupt":
                os.kill(os.getpid(), 2)
            fake.release.wait(PATIENCE_S)
            self.close_connection = True
        else:
            self._stream(_events(fake, seen), fault)

    def _stream(self, events: list[str], fault: str | None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        aborted = {"text": "", "output_ids": [], "meta_info": {"finish_reason": {"type": "abort"}}}
        broken = {
            "garbage": "{no json",
            "lacking": "{}",
            "error": '{"error": {"message": "no memory", "code": 503}}',
            "abort": json.dumps(aborted),
        }
        if fault is not None:
            events = [*events[:1], *([broken[fault]] if fault in broken else [])]
        for event in events:
            self._chunk(f"data: {event}\n\n")
        if fault == "cut":
            self.close_connection = True
        else:
            self._chunk("")

    def _chunk(self, text: str) -> None:
        raw = text.encode()
        self.wfile.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")


def to_ids(text: str) -> list[int]:
    return [byte + FIRST_ID for byte in text.encode()]


def to_text(ids: list[int]) -> str:
    return bytes(one - FIRST_ID for one in ids).decode(errors="replace")


def _events(fake: FakeServer, seen: Seen) -> list[str]:
    native = seen.path == "/generate"
    wish = seen.body["sampling_params"] if native else seen.body
    most = wish["max_new_tokens"] if native else wish["max_tokens"]
    output = to_ids(fake.answer)
    if wish.get("ignore_eos"):
        output = (output * most)[:most]
    reason = "length" if len(output) >= most else "stop"
    output = output[:most]
    prompt = _prompt_ids(seen)
    make = _generate_events if native else _chat_events
    events = make(fake, seen, prompt, output, reason)
    return [*(json.dumps(event) for event in events), "[DONE]"]


def _prompt_ids(seen: Seen) -> list[int]:
    if seen.path == "/generate":
        return list(seen.body["input_ids"])
    return to_ids("".join(f"<{m['role']}>{m['content']}\n" for m in seen.body["messages"]))


def _details(fake: FakeServer, prompt: list[int]) -> tuple[int, dict[str, int] | None]:
    cached = fake.cached(prompt)
    host = min(cached, fake.host_tokens)
    return cached, {"device": cached - host, "host": host} if cached else None


def _generate_events(
    fake: FakeServer, seen: Seen, prompt: list[int], output: list[int], reason: str
) -> list[dict[str, Any]]:
    cached, details = _details(fake, prompt)
    events = []
    for count in range(1, len(output) + 1):
        ids = output[count - 1 : count] if fake.incremental else output[:count]
        meta = {
            "finish_reason": {"type": reason} if count == len(output) else None,
            "prompt_tokens": len(prompt),
            "completion_tokens": count,
            "cached_tokens": cached,
            "cached_tokens_details": details,
        }
        events.append({"text": to_text(ids), "output_ids": ids, "meta_info": meta})
    return events


def _chat_events(
    fake: FakeServer, seen: Seen, prompt: list[int], output: list[int], reason: str
) -> list[dict[str, Any]]:
    cached, details = _details(fake, prompt)
    deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": letter} for letter in to_text(output)]
    events: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    if fake.dialect == "sglang":
        extra: dict[str, Any] = (
            {"output_ids": [output]} if seen.body.get("return_output_ids_in_sglext") else {}
        )
        if seen.body.get("return_cached_tokens_details") and details:
            extra["cached_tokens_details"] = details
        if extra:
            events.append({"choices": [], "sglext": extra})
    if (seen.body.get("stream_options") or {}).get("include_usage"):
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(output)}
        known = {"prompt_tokens_details": {"cached_tokens": cached}}
        events.append({"choices": [], "usage": usage | (known if fake.dialect == "openai" else {})})
    return events


def _common(one: list[int], other: list[int]) -> int:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length
