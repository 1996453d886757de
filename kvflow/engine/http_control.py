"""Steering a server over HTTP: its mode, its workflows, the end of runs."""

import asyncio
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from sglang.srt.utils.auth import AuthLevel, auth_level

from kvflow.engine import prepare, settings, workflows
from kvflow.engine.asking import ask
from kvflow.engine.http_errors import ControlError, ControlRoute

router = APIRouter(prefix="/kvflow", tags=["kvflow"], route_class=ControlRoute)
registered = workflows.Workflows()
_registering = asyncio.Lock()
_Name = Annotated[str, Path(max_length=128)]


@router.get("/policy")
@auth_level(AuthLevel.ADMIN_OPTIONAL)
async def policy() -> Response:
    """The mode at work and the policy's settings."""
    return _json(await ask("policy", {}))


@router.patch("/policy")
@auth_level(AuthLevel.ADMIN_OPTIONAL)
async def set_policy(request: Request) -> Response:
    """Put another mode to work, in all ranks at once: `{"mode": "evict"}`."""
    body = await _body(request)
    if not isinstance(body, dict) or body.keys() != {"mode"}:
        modes = " | ".join(f'"{mode}"' for mode in settings.MODES)
        raise ControlError(400, "this is no policy", hint=f'expected {{"mode": {modes}}}')
    return _json(await ask("policy", body))


@router.post("/runs/{client}/{run}/end")
@auth_level(AuthLevel.ADMIN_OPTIONAL)
async def end_run(
    client: _Name,
    run: _Name,
    expect_next: Annotated[
        bool, Query(description="Whether, in a workflow with `repeat`, another run may follow.")
    ] = True,
) -> Response:
    """A run of a client is over, whatever its last call said. Unknown runs are none any more."""
    return _json(await ask("end", {"client": client, "run": run, "expect_next": expect_next}))


@router.get("/workflows")
@auth_level(AuthLevel.ADMIN_OPTIONAL)
async def list_workflows() -> Response:
    """The served recipe (client null) and what clients registered: names, agents, edges."""
    await ask("policy", {})  # a server without kvflow's cache has none, and says so
    return _json(json.dumps({"workflows": registered.listed(settings.from_environment().recipe)}))


@router.post("/workflows")
@auth_level(AuthLevel.ADMIN_OPTIONAL)
async def register(request: Request) -> Response:
    """Register a workflow of a client, or replace it: `{"client": NAME, "recipe": {...}}`.

    The recipe is as in a recipe file, with `prompt` the text itself. Runs that begin from now on
    walk its graph, before a served recipe of the same name. Answers with the tokens of each agent's
    fixed prefix, as the server's chat template renders it.
    """
    client, recipe = workflows.read(await _body(request))
    async with _registering:
        registered.check_room(client, recipe.name, {})
        prefixes = await prepare.fixed_prefixes(recipe, _tokenize(request))
        lengths = {agent: len(ids) for agent, ids in prefixes.items()}
        registered.check_room(client, recipe.name, lengths)
        told = recipe.model_dump(mode="json", exclude_none=True)
        try:
            answer = await ask("serve", {"client": client, "recipe": told, "prefixes": prefixes})
        except ControlError as error:
            if error.status == HTTPStatus.GATEWAY_TIMEOUT:  # the schedulers do it, but later
                registered.add(client, recipe, lengths)
            raise
        registered.add(client, recipe, lengths)
    return _json(answer)


@router.delete("/workflows/{client}/{name}")
@auth_level(AuthLevel.ADMIN_OPTIONAL)
async def unregister(client: _Name, name: _Name) -> Response:
    """Take back a workflow of a client: its runs are forgotten, ranks as if it had not been."""
    async with _registering:
        registered.remove(client, name)
        return _json(await ask("forget", {"client": client, "name": name}))


def _tokenize(request: Request) -> Callable[[list[dict[str, str]]], list[int]]:
    return prepare.chat_tokenizer(request.app.state.openai_serving_tokenize)


async def _body(request: Request) -> Any:
    """The JSON of a request, of bounded size."""
    text = bytearray()
    async for chunk in request.stream():
        text += chunk
        if len(text) > workflows.MOST_BYTES:
            raise ControlError(
                413, "the body is too large", f"at most {workflows.MOST_BYTES} bytes"
            )
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ControlError(400, "the body is not JSON") from error


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")
