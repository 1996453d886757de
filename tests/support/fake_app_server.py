"""A server for tests of what applications use: real HTTP on loopback, no model, fixed answers.

It answers as SGLang does where OpenAI's client and SGLang's frontend ask, and keeps what came.
`support.fake_server` is the one for kvflow's own driver: it streams, and knows how to fail.
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any

from support.loopback import ANY_PORT, Handler, serving

TEXT = "a fine answer"


@dataclass(frozen=True)
class Seen:
    """A POST, as it came."""

    path: str
    body: dict[str, Any]
    authorization: str | None

    @property
    def params(self) -> Any:
        """Its custom_params; None without."""
        return self.body.get("sampling_params", self.body).get("custom_params")

    @property
    def agent(self) -> str | None:
        return None if self.params is None else str(self.params["kvflow"]["agent"])


@dataclass
class FakeAppServer:
    """What came, and with which HTTP status the end of a run is answered."""

    end_status: int = 200
    seen: list[Seen] = field(default_factory=list)
    url: str = ""

    @contextlib.contextmanager
    def running(self) -> Iterator["FakeAppServer"]:
        """Answer on a free port of loopback for as long as the context lasts."""
        server = _Server(ANY_PORT, _Handler)
        server.fake = self
        with serving(server) as self.url:
            yield self

    @property
    def agents(self) -> list[str | None]:
        """Who spoke, in order; None where a call had no tag."""
        return [one.agent for one in self.calls]

    @property
    def calls(self) -> list[Seen]:
        return [one for one in self.seen if not one.path.startswith("/kvflow/")]

    @property
    def ended(self) -> list[str]:
        return [one.path for one in self.seen if one.path.startswith("/kvflow/")]


class _Server(ThreadingHTTPServer):
    fake: FakeAppServer


class _Handler(Handler):
    # Each answer closes its connection, so that no client keeps one after its test.
    protocol_version = "HTTP/1.0"
    server: _Server

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server wants
        self.reply({"model_path": "fake-model"})

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server wants
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.fake.seen.append(Seen(self.path, body, self.headers.get("Authorization")))
        if self.path.startswith("/kvflow/"):
            self.reply({}, self.server.fake.end_status)
        elif self.path == "/generate" and isinstance(body["text"], list):
            self.reply([_generated(text) for text in body["text"]])
        elif self.path == "/generate":
            self._answer(body, _generated(body["text"]), [_generated(body["text"])])
        elif self.path == "/v1/chat/completions":
            self._answer(body, _chat(), _chat_chunks())
        elif self.path == "/v1/completions":
            choice = {"index": 0, "text": TEXT, "finish_reason": "stop", "logprobs": None}
            self.reply({**_head("text_completion"), "choices": [choice]})
        else:
            self.reply({**_head("response"), "output": []})

    def _answer(self, body: dict[str, Any], whole: Any, parts: list[Any]) -> None:
        if not body.get("stream"):
            self.reply(whole)
            return
        events = [*(json.dumps(part) for part in parts), "[DONE]"]
        stream = "".join(f"data: {event}\n\n" for event in events)
        self.reply(stream, content_type="text/event-stream")


def _generated(text: str) -> dict[str, Any]:
    logprobs = [[-1.0, token, text[-1:]] for token in range(4)]
    meta = {
        "prompt_tokens": len(text),
        "input_token_logprobs": logprobs,
        "output_token_logprobs": logprobs,
    }
    return {"text": TEXT, "meta_info": meta}


def _head(kind: str) -> dict[str, Any]:
    return {"id": "1", "object": kind, "created": 0, "created_at": 0, "model": "fake-model"}


def _chat() -> dict[str, Any]:
    message = {"role": "assistant", "content": TEXT}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {**_head("chat.completion"), "choices": [choice]}


def _chat_chunks() -> list[dict[str, Any]]:
    parts: list[tuple[dict[str, str], str | None]] = [
        ({"role": "assistant", "content": ""}, None),
        ({"content": TEXT}, None),
        ({}, "stop"),
    ]
    return [
        {
            **_head("chat.completion.chunk"),
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }
        for delta, reason in parts
    ]
