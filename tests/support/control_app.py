"""kvflow's routes on an application, as SGLang has them, over a scheduler in this process."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx2
import support.engine  # noqa: F401 - before SGLang
from fastapi import FastAPI
from sglang.srt.utils.auth import add_api_key_middleware
from support.mini_scheduler import MiniScheduler

from kvflow.engine import asking, control, http, http_control, http_watch, watchers, workflows
from kvflow.engine.plugin import BACKEND


class Letters:
    """SGLang's OpenAIServingTokenize for a tokenizer that knows letters."""

    def _tokenize_chat_request(self, request: Any) -> list[int]:
        said = "".join(f"<{one['role']}>{one['content']}" for one in map(dict, request.messages))
        return [ord(letter) for letter in said]


class ControlApp:
    """Asks an application that serves one scheduler.

    Args:
        mini: the scheduler.
        monkeypatch: pytest's.
        backend: SGLang's radix cache backend.
        keys: SGLang's `api_key` and `admin_api_key`.
    """

    def __init__(
        self, mini: MiniScheduler, monkeypatch: Any, *, backend: str = BACKEND, **keys: str
    ) -> None:
        async def communicate(message: Any) -> list[Any]:
            await asyncio.sleep(0)
            return [control.handle(mini, message)]

        manager = SimpleNamespace(
            server_args=SimpleNamespace(radix_cache_backend=backend),
            auto_create_handle_loop=lambda: None,
            kvflow_control_communicator=communicate,
        )
        monkeypatch.setattr(asking, "_manager", lambda: manager)
        monkeypatch.setattr(http_control, "registered", workflows.Workflows())
        monkeypatch.setattr(http_watch, "watchers", watchers.Watchers(http_watch._follow))
        self.app = FastAPI()
        self.app.state.openai_serving_tokenize = Letters()
        http.add_routes(self.app)
        if keys:
            known = {"api_key": None, "admin_api_key": None}
            add_api_key_middleware(self.app, **(known | keys))

    async def ask(self, method: str, path: str, **request: Any) -> Any:
        """The response to one request."""
        transport = httpx2.ASGITransport(app=self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://kvflow") as client:
            return await client.request(method, path, **request)

    async def stream(
        self,
        path: str,
        enough: Callable[[list[bytes]], bool],
        headers: dict[str, str] | None = None,
    ) -> tuple[int, list[bytes]]:
        """The status and the parts of a response, read until there are enough of them."""
        gone, parts, status = asyncio.Event(), [], 0
        where, _, query = path.partition("?")

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message.get("body"):
                parts.append(message["body"])
                if enough(parts):
                    gone.set()

        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": where,
            "raw_path": where.encode(),
            "query_string": query.encode(),
            "headers": [(k.encode(), v.encode()) for k, v in (headers or {}).items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        async with asyncio.timeout(20):
            await self.app(scope, receive, send)
        return status, parts
