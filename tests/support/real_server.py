"""A real SGLang server on the CPU engine, and the few questions tests ask it."""

import contextlib
import json
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvflow.engine.cpu import demo_model
from kvflow.engine.launch import Options, Server, build
from kvflow.recipe.load import Loaded

START_SECONDS = 240


@dataclass(frozen=True)
class Answer:
    """What came back for one call."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    device: int  # cached tokens
    host: int
    ttft_s: float


class Refused(Exception):
    """The server answered with an HTTP error.

    Attributes:
        code: the status; `text`: the body.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code, self.text = code, text


class RealServer:
    """Asks one server."""

    def __init__(self, url: str, link: Path) -> None:
        self.url = url
        self._link = link

    def set_link(self, gbps: float | None) -> None:
        """Change the emulated link's speed, GB/s; None for no limit."""
        self._link.write_text("" if gbps is None else str(gbps))

    def post(self, path: str, body: Any = None, method: str = "POST") -> Any:
        """Send JSON, return JSON. Raises Refused for an HTTP error."""
        data = None if method == "GET" else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                text = reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, error.read().decode()) from None
        return json.loads(text) if text.startswith(("{", "[")) else text

    def get(self, path: str) -> Any:
        """GET, as JSON."""
        return self.post(path, method="GET")

    def flush(self) -> None:
        """Empty both tiers; waits until no copy is in flight."""
        for _ in range(100):
            with contextlib.suppress(Refused):
                self.post("/flush_cache", {})
                return
            time.sleep(0.1)
        raise AssertionError("the cache could not be flushed")

    def generate(
        self,
        ids: Sequence[int],
        tokens: int = 8,
        custom_params: Any = None,
    ) -> Answer:
        """One greedy call of exactly so many tokens, streamed."""
        sampling = {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}
        if custom_params is not None:
            sampling["custom_params"] = custom_params
        body = {
            "input_ids": list(ids),
            "sampling_params": sampling,
            "return_logprob": True,
            "stream": True,
        }
        request = urllib.request.Request(
            self.url + "/generate",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        began, ttft, last = time.perf_counter(), 0.0, {}
        with urllib.request.urlopen(request, timeout=120) as reply:
            for line in reply:
                text = line.decode().strip()
                if text.startswith("data: {"):
                    ttft = ttft or time.perf_counter() - began
                    last = json.loads(text[len("data: ") :])
        meta = last["meta_info"]
        tiers = meta.get("cached_tokens_details") or {"device": 0, "host": 0}
        return Answer(
            ids=tuple(entry[1] for entry in meta["output_token_logprobs"]),
            logprobs=tuple(entry[0] for entry in meta["output_token_logprobs"]),
            device=tiers["device"],
            host=tiers["host"],
            ttft_s=ttft,
        )

    def snapshot(self) -> Any:
        """One frame, with as many nodes as there may be."""
        return self.get("/kvflow/snapshot?nodes=2000")


def tag(
    agent: str, *, run: str = "r", workflow: str = "cycle", client: str = "t", **more: Any
) -> dict[str, Any]:
    """The custom_params of a call."""
    return {"kvflow": {"client": client, "workflow": workflow, "run": run, "agent": agent, **more}}


@contextlib.contextmanager
def running(
    folder: Path,
    *,
    pool_tokens: int,
    plugin: bool = False,
    mode: Any = None,
    loaded: Loaded | None = None,
    flags: Sequence[str] = (),
) -> Iterator[RealServer]:
    """A server with the built-in model in fp32, a pool of so many tokens, and a host tier."""
    demo_model.ensure()
    link = folder / "link"
    link.write_text("")
    options = Options(
        device="cpu",
        mode=mode,
        port=_free_port(),
        with_plugin=plugin,
        sglang_flags=("--max-total-tokens", str(pool_tokens), "--dtype", "float32", *flags),
    )
    environ = {**os.environ, "KVFLOW_LINK_GBPS": f"@{link}", "OMP_WAIT_POLICY": "PASSIVE"}
    launch = build(options, loaded, environ)
    with Server(launch, folder / "sglang.log", environ) as server:
        for _ in server.progress(START_SECONDS):
            pass
        yield RealServer(launch.url, link)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
