"""The control plane as an HTTP client sees it, on SGLang's own port and with its keys.

Lives in SGLang's HTTP process. It only carries: what is asked goes to every scheduler rank
through SGLang's communicator, and the first rank's answer comes back.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from sglang.srt.utils.auth import AuthLevel, auth_level

from kvflow.engine import ipc, prepare
from kvflow.engine.plugin import BACKEND
from kvflow.engine.snapshot_limits import DEFAULT_NODES, MOST_NODES

_log = logging.getLogger(__name__)
_TICK_SECONDS = 1.0
_ANSWER_SECONDS = 10.0
router = APIRouter(prefix="/kvflow", tags=["kvflow"])


def install() -> None:
    """Add the routes, and what runs beside them, before SGLang's server starts. Once."""
    from sglang.srt.entrypoints.http_server import app

    if getattr(app.state, "has_kvflow", False):
        return
    app.state.has_kvflow = True
    ipc.install()
    app.include_router(router)
    stock = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(the_app: Any) -> AsyncIterator[Any]:
        async with stock(the_app) as state:
            tasks = [asyncio.create_task(work) for work in (_ticks(), _prefixes(the_app))]
            try:
                yield state
            finally:
                for task in tasks:
                    task.cancel()

    app.router.lifespan_context = lifespan


@router.get("/snapshot")
@auth_level(AuthLevel.ADMIN_OPTIONAL)
async def snapshot(nodes: int = Query(DEFAULT_NODES, ge=0, le=MOST_NODES)) -> Response:
    """One frame (schema version 1): the tree nearest the root, agents, pools, evictions."""
    return _json(await ask("snapshot", {"most_nodes": nodes}))


@router.get("/policy")
@auth_level(AuthLevel.ADMIN_OPTIONAL)
async def policy() -> Response:
    """The mode at work and the policy's settings."""
    return _json(await ask("policy", {}))


@router.patch("/policy")
@auth_level(AuthLevel.ADMIN_OPTIONAL)
async def set_policy(request: Request) -> Response:
    """Put another mode to work, in all ranks at once: `{"mode": "evict"}`."""
    try:
        body = await request.json()
    except ValueError as error:
        raise HTTPException(400, detail="the body is not JSON") from error
    if not isinstance(body, dict) or body.keys() != {"mode"}:
        raise HTTPException(400, detail='expected {"mode": "off" | "evict"}')
    return _json(await ask("policy", body))


async def ask(op: str, body: dict[str, Any]) -> str:
    """Ask every rank of every replica; the answer of the first, as JSON text.

    Raises:
        HTTPException: 404 without kvflow's cache, 400 for what a scheduler refuses, 504 when
            none answers.
    """
    from sglang.srt.entrypoints.http_server import get_global_state

    manager = get_global_state().tokenizer_manager
    if manager.server_args.radix_cache_backend != BACKEND:
        raise HTTPException(404, detail="this server runs without kvflow's cache")
    manager.auto_create_handle_loop()
    communicator = getattr(manager, f"{ipc.NAME}_communicator")
    message = ipc.KvflowReq(op=op, body=json.dumps(body))
    try:
        answers = await asyncio.wait_for(communicator(message), _ANSWER_SECONDS)
    except TimeoutError as error:
        raise HTTPException(504, detail="the scheduler does not answer") from error
    for answer in answers:
        if answer.error:
            raise HTTPException(400, detail=answer.error)
    return str(answers[0].body)


async def _ticks() -> None:
    """Time for all ranks alike: runs that fall silent expire after so many ticks."""
    while True:
        await asyncio.sleep(_TICK_SECONDS)
        try:
            await ask("tick", {})
        except HTTPException as error:
            if error.status_code == 404:
                return


async def _prefixes(app: Any) -> None:
    """Render the served recipe's prompts as SGLang would and tell the schedulers."""
    try:
        served = prepare.served_recipe(app.state.openai_serving_tokenize)
        if served is not None:
            await ask("serve", served)
    except Exception:  # noqa: BLE001
        # Without prefixes kvflow serves on: tags with fixed_tokens still say where they end.
        _log.exception("kvflow: the recipe's fixed prefixes could not be prepared")


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")
