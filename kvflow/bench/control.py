"""What a bench asks of a server beside calls: an empty cache, another mode, and its counters."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, TypeVar

import httpx2
import msgspec

from kvflow.client.http import KEY_HINT, new_client
from kvflow.errors import KvflowError, NotAuthorised, ServerUnreachable
from kvflow.frames import Frame, Traffic
from kvflow.recipe.model import Mode

Counts = Mapping[str, float]
"""What a server has counted since its start, by name; only differences mean something."""

_ANSWER_S = 30.0
_FLUSH_TRIES = 300
_PAUSE_S = 0.1
_NO_COUNTERS = {"h2d_pending_bytes", "d2h_pending_bytes"}


Part = TypeVar("Part", bound=msgspec.Struct)


class _Policy(msgspec.Struct):
    """What is read of /kvflow/policy."""

    mode: Mode


class _Workflow(msgspec.Struct):
    client: str | None
    name: str


class _Workflows(msgspec.Struct):
    """What is read of /kvflow/workflows."""

    workflows: list[_Workflow]


class Control:
    """Steers one server. `steering` makes one."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self._http, self._url = http, url

    async def flush(self) -> None:
        """Empty the cache; SGLang refuses while copies are in flight, so it is asked again.

        Raises:
            KvflowError: it cannot be emptied.
        """
        for _ in range(_FLUSH_TRIES):
            reply = await self._ask("POST", "/flush_cache", "emptying the cache")
            if reply.is_success:
                return
            await asyncio.sleep(_PAUSE_S)
        raise KvflowError(
            f"the cache of {self._url} cannot be emptied",
            " ".join(reply.text.split())[:200],
            "something else uses the server: a bench needs it for itself",
        )

    async def mode(self) -> Mode | None:
        """The mode at work; None if the server runs without kvflow."""
        reply = await self._ask("GET", "/kvflow/policy", "asking for the mode")
        if reply.status_code == HTTPStatus.NOT_FOUND:
            return None
        return self._read(reply, "asking for the mode", _Policy).mode

    async def switch(self, mode: Mode) -> None:
        """Put a mode to work.

        Raises:
            KvflowError: the server refuses.
        """
        what = f"switching to mode {mode}"
        reply = await self._ask("PATCH", "/kvflow/policy", what, {"mode": mode})
        self._read(reply, what, _Policy)

    async def workflows(self, client: str) -> set[str]:
        """Names of the workflows that runs of a client walk: its own, and the served one."""
        what = "asking for workflows"
        known = self._read(await self._ask("GET", "/kvflow/workflows", what), what, _Workflows)
        return {one.name for one in known.workflows if one.client in (None, client)}

    async def counts(self) -> Counts | None:
        """What the server has counted; None if it runs without kvflow."""
        frame = await self._frame()
        return None if frame is None else flat(frame)

    async def traffic(self) -> Traffic | None:
        """What has been copied between the tiers; None without kvflow or without a host tier."""
        frame = await self._frame()
        return None if frame is None else frame.traffic

    async def _frame(self) -> Frame | None:
        what = "asking for counters"
        reply = await self._ask("GET", "/kvflow/snapshot?nodes=0", what)
        if reply.status_code == HTTPStatus.NOT_FOUND:
            return None
        return self._read(reply, what, Frame)

    async def _ask(self, method: str, path: str, what: str, body: Any = None) -> httpx2.Response:
        try:
            reply = await self._http.request(method, path, json=body)
        except httpx2.HTTPError as error:
            raise ServerUnreachable(
                f"{what}: {self._url} does not answer", str(error) or type(error).__name__
            ) from error
        if reply.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise NotAuthorised(
                f"{what}: {self._url} wants another API key",
                f"HTTP {reply.status_code}",
                KEY_HINT,
            )
        return reply

    def _read(self, reply: httpx2.Response, what: str, kind: type[Part]) -> Part:
        if not reply.is_success:
            why = f"HTTP {reply.status_code}: {' '.join(reply.text.split())[:200]}"
            raise KvflowError(f"{what}: {self._url} refuses", why)
        try:
            return msgspec.json.decode(reply.content, type=kind)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise KvflowError(f"{what}: {self._url} answers nonsense", str(error)) from error


@asynccontextmanager
async def steering(url: str, api_key: str | None = None) -> AsyncIterator[Control]:
    """Steer the server at a URL for as long as the context lasts."""
    async with new_client(url, api_key, _ANSWER_S) as http:
        yield Control(http, url)


def flat(frame: Frame) -> Counts:
    """The counters of a frame by name, those of the link among them if it has one."""
    counted: dict[str, int | dict[str, int]] = msgspec.structs.asdict(frame.counters)
    found = {
        name: float(sum(value.values()) if isinstance(value, dict) else value)
        for name, value in counted.items()
    }
    if frame.traffic is not None:
        found |= _of_link(frame.traffic)
    return found


def _of_link(traffic: Traffic) -> Counts:
    fields = msgspec.structs.asdict(traffic)
    return {name: float(value) for name, value in fields.items() if name not in _NO_COUNTERS}


def difference(after: Counts | None, before: Counts | None) -> Counts | None:
    """What was counted in between; None if one of them is."""
    if after is None or before is None:
        return None
    return {name: value - before.get(name, 0.0) for name, value in after.items()}
