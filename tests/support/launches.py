"""Recipes and launches for the tests of `kvflow serve`."""

import os
import socket
import sys
from pathlib import Path

from support import fake_sglang

from kvflow.engine.launch import Launch
from kvflow.recipe.convert import to_graph
from kvflow.recipe.load import Loaded
from kvflow.recipe.model import Recipe

_SGLANG = (sys.executable, "-m", "sglang.launch_server", "--host", "127.0.0.1")


def loaded(**engine: object) -> Loaded:
    """A recipe of two agents, as if it had been read from flows/two.yaml."""
    recipe = Recipe.model_validate(
        {
            "kvflow": 1,
            "name": "two",
            "agents": {
                "writer": {"prompt": "writer.md"},
                "critic": {"fixed_tokens": 64, "after": "writer", "fan_out": "1..2"},
            },
            "policy": {"mode": "evict", "prefetch_depth": 2},
            "engine": engine,
        }
    )
    return Loaded(recipe, Path("flows/two.yaml"), to_graph(recipe), {"writer": "You write."})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fake_environment(folder: Path, behaviour: str = "serve", **more: str) -> dict[str, str]:
    """The environment of a machine with the stand-in for SGLang and a home of its own."""
    site = folder / "site"
    if not site.exists():
        fake_sglang.install(site)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("KVFLOW_", "SGLANG_", "XDG_"))
    }
    return {
        **kept,
        "PYTHONPATH": str(site),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "FAKE_SGLANG": behaviour,
        "FAKE_SGLANG_PIDS": str(folder / "pids"),
        **more,
    }


def fake_launch(port: int, **more: object) -> Launch:
    """A launch of the stand-in, as `build` would make it."""
    values: dict[str, object] = {
        "argv": (*_SGLANG, "--port", str(port)),
        "env": {},
        "files": {},
        "url": f"http://127.0.0.1:{port}",
        "host": "127.0.0.1",
        "port": port,
        "device": "cpu",
        "mode": "off",
        "model": "m",
        "recipe": None,
        "guarded": False,
        **more,
    }
    return Launch(**values)
