"""Looking at a server over HTTP: one frame, or one after another."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from sglang.srt.utils.auth import AuthLevel, auth_level

from kvflow.engine.asking import ask
from kvflow.engine.http_errors import ControlError, ControlRoute
from kvflow.engine.snapshot_limits import DEFAULT_NODES, MOST_NODES
from kvflow.engine.watchers import CATCHING_UP_S, INTERVAL_S, Looks, Watchers

MOST_STREAMS = 64
_LONGEST_INTERVAL_S = 60.0
router = APIRouter(prefix="/kvflow", tags=["kvflow"], route_class=ControlRoute)
_Nodes = Annotated[int, Query(ge=0, le=MOST_NODES, description="Most nodes of the tree.")]


async def _follow(since: int) -> str:
    return await ask("follow", {"since": since})


async def _look(most_nodes: int) -> str:
    return await ask("snapshot", {"most_nodes": most_nodes})


watchers = Watchers(_follow)
looks = Looks(_look, INTERVAL_S)
looks_without_nodes = Looks(_look, CATCHING_UP_S)
"""Without nodes a frame costs next to nothing, and a bench that draws what happened asks often."""

_streams: set[object] = set()


async def _stream() -> AsyncIterator[None]:
    """A place among the streams; what is wrong is told before the first event."""
    if len(_streams) >= MOST_STREAMS:
        raise ControlError(
            503, "too many streams", f"{MOST_STREAMS} are open", "close some, or ask for snapshots"
        )
    await ask("policy", {})
    me = object()
    _streams.add(me)
    try:
        yield
    finally:
        _streams.discard(me)


@router.get("/snapshot")
@auth_level(AuthLevel.ADMIN_OPTIONAL)
async def snapshot(
    nodes: _Nodes = DEFAULT_NODES,
    since: Annotated[
        int | None,
        Query(ge=0, description="`seq` of the frame you have: what changed after it. 0: begin."),
    ] = None,
) -> Response:
    """One frame (schema version 1).

    Without `since` it shows the tree nearest the root. With it, the nodes that changed after that
    frame and those that are gone; where `nodes_left_out`, ask again. A frame without `delta_since`
    is the beginning of the whole tree: forget what you have. `nodes` below 100 count as 100 then.

    However many people ask, a scheduler is asked five times a second at most, and fifty times for
    frames without nodes (`nodes=0`). Without `since` an answer waits for its turn: it is of a
    moment after the question.
    """
    if since is None:
        frame = await (looks if nodes else looks_without_nodes).frame(nodes)
    else:
        frame = await watchers.frame(since, nodes)
    return Response(msgspec.json.encode(frame), media_type="application/json")


@router.get("/events", response_class=EventSourceResponse, dependencies=[Depends(_stream)])
@auth_level(AuthLevel.ADMIN_OPTIONAL)
async def events(
    nodes: _Nodes = DEFAULT_NODES,
    interval: Annotated[
        float, Query(ge=0.25, le=_LONGEST_INTERVAL_S, description="Seconds between frames.")
    ] = 1.0,
    last_event_id: Annotated[int | None, Header(ge=0)] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Frames as server-sent events, each with what changed after the one before.

    An event's id is its frame's `seq`; a client that comes back with it as Last-Event-ID goes on
    from there. Who reads slowly gets fewer frames with more in each. After an error the stream
    ends; come back later.
    """
    since = last_event_id or 0
    try:
        while True:
            frame = await watchers.frame(since, nodes)
            since = frame.seq
            text = msgspec.json.encode(frame).decode()
            yield ServerSentEvent(raw_data=text, event="frame", id=str(since))
            await asyncio.sleep(watchers.rest_s if frame.nodes_left_out else interval)
    except ControlError as error:
        yield ServerSentEvent(raw_data=json.dumps(error.body()), event="error")
