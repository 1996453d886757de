"""Real SGLang servers on the CPU engine, and the few questions tests ask them."""

import contextlib
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from kvflow.bench.fleet import free_port
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
    """Asks one server.

    Attributes:
        url: where it answers.
        link: the file that holds the speed of its emulated link.
    """

    def __init__(self, url: str, link: Path) -> None:
        self.url, self.link = url, link

    def set_link(self, gbps: float | None) -> None:
        """Change the emulated link's speed, GB/s; None for no limit."""
        self.link.write_text("" if gbps is None else str(gbps))

    def set_mode(self, mode: str) -> None:
        """Put another mode of the plugin to work."""
        answer = self.post("/kvflow/policy", {"mode": mode}, method="PATCH")
        assert answer["mode"] == mode

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

    def empty(self) -> None:
        """Both tiers without a token, and a link without a limit: as a test begins."""
        self.set_link(None)
        self.flush()

    def flush(self) -> None:
        """Empty both tiers; waits until no copy is in flight. Runs of clients stay."""
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

    def snapshot(self, nodes: int = 2000) -> Any:
        """One frame, with so many nodes of the tree; by default as many as there may be."""
        return self.get(f"/kvflow/snapshot?nodes={nodes}")

    def copies_fly(self) -> bool:
        """Whether a copy between the tiers is under way; only a server with the plugin knows."""
        traffic = self.snapshot(nodes=0)["traffic"]
        return bool(traffic["h2d_pending_bytes"] or traffic["d2h_pending_bytes"])


def tag(
    agent: str, *, run: str = "r", workflow: str = "cycle", client: str = "t", **more: Any
) -> dict[str, Any]:
    """The custom_params of a call."""
    return {"kvflow": {"client": client, "workflow": workflow, "run": run, "agent": agent, **more}}


@dataclass(frozen=True)
class Kind:
    """What a server is started with, beside the built-in model in fp32 and a host tier.

    Attributes:
        pool_tokens: of the device pool.
        plugin: whether it is kvflow's; else stock SGLang.
        loaded: a recipe that it serves.
        flags: for SGLang.
        environ: variables beside those of this process.
    """

    pool_tokens: int
    plugin: bool = False
    loaded: Loaded | None = None
    flags: Sequence[str] = ()
    environ: Mapping[str, str] = field(default_factory=dict)


class Starting:
    """Servers on their way, side by side: most of a start keeps one core busy.

    Leaving the context ends them.
    """

    def __init__(self, folder: Path, kinds: Mapping[str, Kind]) -> None:
        demo_model.ensure()
        self._folder = folder
        with contextlib.ExitStack() as stack:
            with contextlib.ExitStack() as held:
                ports = [held.enter_context(free_port()).getsockname()[1] for _ in kinds]
            self._servers = {
                name: stack.enter_context(_start(folder, name, kind, port))
                for port, (name, kind) in zip(ports, kinds.items(), strict=True)
            }
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def ready(self) -> dict[str, RealServer]:
        """By name, once all of them answer. Raises KvflowError for one that does not."""
        for server in self._servers.values():
            for _ in server.progress(START_SECONDS):
                pass
        return {
            name: RealServer(server.launch.url, _link(self._folder, name))
            for name, server in self._servers.items()
        }


def _start(folder: Path, name: str, kind: Kind, port: int) -> Server:
    link = _link(folder, name)
    link.write_text("")
    pool = ("--max-total-tokens", str(kind.pool_tokens), "--dtype", "float32")
    options = Options(
        device="cpu",
        port=port,
        with_plugin=kind.plugin,
        sglang_flags=(*pool, *kind.flags),
    )
    environ = {
        **os.environ,
        "KVFLOW_LINK_GBPS": f"@{link}",
        "OMP_WAIT_POLICY": "PASSIVE",
        **kind.environ,
    }
    return Server(build(options, kind.loaded, environ), folder / f"{name}.log", environ)


def _link(folder: Path, name: str) -> Path:
    return folder / f"{name}.link"
