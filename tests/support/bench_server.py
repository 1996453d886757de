"""The fake server with what a bench asks of a server beside calls: flush, mode, snapshot."""

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from support import fake_server

from kvflow.frames import Counters, Frame, Pool, Traffic

_POOL = Pool(capacity=100, free=50, evictable=20, locked=0)


@dataclass
class BenchServer(fake_server.FakeServer):
    """A server whose cache can be emptied, and whose mode can be switched.

    Attributes:
        mode: at work; None for stock SGLang, whose /kvflow routes are not there.
        workflows: that it knows, as (client, name).
        busy: so many times a flush is refused first.
        steps: everything it was asked to do, in order: "flush", "mode full", "call a".
        prefetches: counted in its frames.
    """

    mode: str | None = "off"
    workflows: tuple[tuple[str | None, str], ...] = ((None, "flow"),)
    busy: int = 0
    steps: list[str] = field(default_factory=list)
    prefetches: int = 0

    def policy(self, body: dict[str, Any] | None) -> tuple[int, Any]:
        if self.mode is None:
            return 404, {"detail": "Not Found"}
        if body is not None:
            if body["mode"] == "broken":
                return 400, {"detail": "no mode 'broken'"}
            self.mode = body["mode"]
            self.steps.append(f"mode {self.mode}")
        return 200, {"mode": self.mode}

    def flush(self) -> int:
        if self.busy:
            self.busy -= 1
            return 400
        self.steps.append("flush")
        self._prompts.clear()
        return 200

    def frame(self) -> tuple[int, Any]:
        if self.mode is None:
            return 404, {"detail": "Not Found"}
        return 200, msgspec.to_builtins(make_frame(self.prefetches))


def make_frame(prefetches: int = 0) -> Frame:
    """A frame without a tree."""
    counters = Counters(
        tagged_calls=5, untagged_calls=0, unexpected_calls=0, unknown_agents=0, other_prompt=0,
        bad_hints={}, evicted_device_tokens=0, evicted_host_tokens=0, not_backed_up_tokens=0,
        expired_runs=0, prefetches=prefetches,
    )  # fmt: skip
    traffic = Traffic(
        h2d_bytes=7, d2h_bytes=0, h2d_operations=0, d2h_operations=0, demand_bytes=0, waits=0,
        h2d_pending_bytes=3, d2h_pending_bytes=0,
    )  # fmt: skip
    return Frame(
        mode="full", page_size=1, bytes_per_token=6144, untagged_steps=4, device=_POOL, host=None,
        running=0, waiting=0, runs=0, nodes=(), nodes_left_out=False, agents=(), evictions=(),
        counters=counters, traffic=traffic,
    )  # fmt: skip


class _Handler(fake_server._Handler):
    def do_GET(self) -> None:  # noqa: N802
        fake = self.server.fake
        assert isinstance(fake, BenchServer)
        if self.path == "/kvflow/policy":
            self._answer(*fake.policy(None))
        elif self.path.startswith("/kvflow/snapshot"):
            self._answer(*fake.frame())
        elif self.path == "/kvflow/workflows":
            rows = [{"client": client, "name": name} for client, name in fake.workflows]
            self._answer(200, {"workflows": rows})
        else:
            super().do_GET()

    def do_PATCH(self) -> None:  # noqa: N802
        fake = self.server.fake
        assert isinstance(fake, BenchServer)
        self._answer(*fake.policy(self._body()))

    def do_POST(self) -> None:  # noqa: N802
        fake = self.server.fake
        assert isinstance(fake, BenchServer)
        if self.path == "/flush_cache":
            self.reply("Flushed.\n", fake.flush(), content_type="text/plain")
        else:
            super().do_POST()

    def _generate(self, seen: fake_server.Seen) -> None:
        fake = self.server.fake
        assert isinstance(fake, BenchServer)
        tag = seen.params.get("kvflow")
        fake.steps.append(f"call {tag['agent']}" if tag else "plain")
        fake.prefetches += 1
        super()._generate(seen)

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, status: int, body: Any) -> None:
        if not self._refused():
            self.reply(body, status)


@pytest.fixture(autouse=True)
def _bench_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imported by tests that use a BenchServer."""
    monkeypatch.setattr(fake_server, "_Handler", _Handler)
