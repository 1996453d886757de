"""The control plane as an HTTP client sees it, on SGLang's own port and with its keys.

Lives in SGLang's HTTP process. It only carries: what is asked goes to every scheduler rank
through SGLang's communicator, and the first rank's answer comes back.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from kvflow.engine import http_control, http_errors, http_watch, ipc, metrics, prepare
from kvflow.engine.asking import ask
from kvflow.engine.metrics_sample import Sample

_log = logging.getLogger(__name__)
_TICK_SECONDS = 1.0


def install() -> None:
    """Add the routes, and what runs beside them, before SGLang's server starts. Once."""
    from sglang.srt.entrypoints.http_server import app

    if getattr(app.state, "has_kvflow", False):
        return
    app.state.has_kvflow = True
    ipc.install()
    add_routes(app)
    stock = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(the_app: Any) -> AsyncIterator[Any]:
        async with stock(the_app) as state:
            collector = metrics.Collector()
            metrics.mount(the_app, collector)
            tasks = [asyncio.create_task(work) for work in (_ticks(collector), _prefixes(the_app))]
            try:
                yield state
            finally:
                for task in tasks:
                    task.cancel()

    app.router.lifespan_context = lifespan


def add_routes(app: Any) -> None:
    """Add kvflow's routes, each guarded by SGLang's keys.

    SGLang finds out what level of key a route needs by looking for it among the application's own
    routes. FastAPI keeps those of an included router apart, so that they would pass for ordinary
    ones, open where only an admin key is set: they are added one by one.
    """
    for router in (http_watch.router, http_control.router):
        app.router.routes.extend(router.routes)
    app.add_exception_handler(http_errors.ControlError, http_errors.answer)


async def _ticks(collector: metrics.Collector) -> None:
    """Time for all ranks alike: runs that fall silent expire after so many ticks."""
    fails = False
    while True:
        await asyncio.sleep(_TICK_SECONDS)
        sample = None  # of a scheduler that does not answer: no series rather than old ones
        try:
            sample = msgspec.json.decode(await ask("tick", {}), type=Sample)
            fails = False
        except http_errors.ControlError as error:
            if error.status == 404:
                return
        except Exception:  # noqa: BLE001
            # Without ticks silent runs never expire, so they go on, whatever happened to one.
            if not fails:
                _log.exception("kvflow: a tick has failed")
            fails = True
        collector.sample = sample


async def _prefixes(app: Any) -> None:
    """Render the served recipe's prompts as SGLang would and tell the schedulers."""
    try:
        served = await prepare.served_recipe(app.state.openai_serving_tokenize)
        if served is not None:
            await ask("serve", served)
    except Exception:  # noqa: BLE001
        # Without prefixes kvflow serves on: tags with fixed_tokens still say where they end.
        _log.exception("kvflow: the recipe's fixed prefixes could not be prepared")
