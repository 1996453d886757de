"""What a process of SGLang looks like with kvflow installed, as JSON on stdout.

Run as a script, for a process that nobody has prepared: before kvflow is asked for, after its
plugin was registered once more, and after it was asked for and registered twice.
"""

import json
import os
import sys
import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch

    STREAMS = (torch.cpu.Stream, torch.cpu.Event, torch.cpu.current_stream)

    from sglang.srt.entrypoints.http_server import app
    from sglang.srt.managers import tokenizer_control_mixin
    from sglang.srt.managers.scheduler import Scheduler
    from sglang.srt.mem_cache import registry
    from sglang.srt.mem_cache.unified_cache import tree_core_registry
    from sglang.srt.mem_cache.unified_radix_cache import COMPONENT_REGISTRY
    from sglang.srt.plugins import load_plugins
    from starlette.routing import Match

ROUTES = (("GET", "/kvflow/snapshot"), ("GET", "/kvflow/policy"), ("PATCH", "/kvflow/policy"))
METHODS = dict(vars(Scheduler))
COMPONENTS = dict(COMPONENT_REGISTRY)
LIFESPAN = app.router.lifespan_context


def answering(method: str, path: str) -> int:
    """How many routes would answer."""
    scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
    return sum(route.matches(dict(scope))[0] is Match.FULL for route in app.routes)


def look() -> dict[str, Any]:
    return {
        "routes": [answering(*route) for route in ROUTES],
        "communicators": [spec[0] for spec in tokenizer_control_mixin._COMMUNICATOR_SPECS],
        "changed_methods": [n for n, m in vars(Scheduler).items() if METHODS.get(n) is not m],
        "caches": registry.registered_radix_cache_backends(),
        "cores": tree_core_registry.registered_tree_core_backends(),
        "components_are_stock": COMPONENT_REGISTRY == COMPONENTS,
        "streams_are_stock": (torch.cpu.Stream, torch.cpu.Event, torch.cpu.current_stream)
        == STREAMS,
        "lifespan_is_stock": app.router.lifespan_context is LIFESPAN,
        "loaded": [name for name in sys.modules if name.startswith("kvflow.")],
    }


def main() -> None:
    load_plugins()
    found: dict[str, Any] = {"unasked": look()}
    from kvflow.engine import plugin

    plugin.register()
    found["unasked_again"] = look()
    os.environ["KVFLOW_CONFIG"] = "{}"
    plugin.register()
    lifespan = app.router.lifespan_context
    plugin.register()
    found["asked_twice"] = look()
    found["lifespan_was_wrapped_again"] = app.router.lifespan_context is not lifespan
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
