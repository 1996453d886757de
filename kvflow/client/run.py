"""A run of a workflow as an application sees it: who its calls are by, and when it is over."""

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self
from uuid import uuid4

from kvflow.client.ending import end_run
from kvflow.client.http import Http
from kvflow.client.tagging import CustomParams, tag
from kvflow.errors import KvflowError

_log = logging.getLogger(__name__)
_END_SECONDS = 5.0


class Run:
    """One run of a workflow, from its first call to the end of a `with` or `async with` block.

    At the end the server is told that the run is over, so that its agents are no longer expected.
    That is a hint like any other: a server without kvflow is fine, and one that cannot be told
    within 5 s is logged as a warning and never raised; there the run expires by itself. Safe to use
    by many threads and tasks at once.

    Args:
        url: where the server is; a trailing /v1 is allowed.
        client: the application; owner of the run and agent names.
        workflow: name of the recipe that the server knows, or any other.
        run: the name of this run, unique among the client's runs in flight; drawn if absent.
        api_key: sent as a bearer token when the run ends.

    Attributes:
        id: the name of this run.
        steps: steps-to-execution by agent, for an application that evaluates its own graph: every
            call from now on carries them (paper section 3.3, the wire format). None: the server
            evaluates the recipe's graph.

    Raises:
        UsageError: the URL is none, or the server would ignore one of the names.
    """

    def __init__(
        self,
        url: str,
        client: str,
        workflow: str,
        run: str | None = None,
        *,
        api_key: str | None = None,
    ) -> None:
        self.id = uuid4().hex if run is None else run
        self.steps: Mapping[str, int] | None = None
        self._client, self._workflow = client, workflow
        self._url, self._api_key = url, api_key
        # A URL or a name that is none is refused now rather than when the run ends.
        self.tag("any")
        self._http()

    def tag(
        self, agent: str, fixed_tokens: int | None = None, *, final: bool = False
    ) -> CustomParams:
        """The `custom_params` of a call in this run: as `kvflow.client.tag`, which see.

        Args:
            agent: who speaks, by its name in the recipe.
            fixed_tokens: length of the agent's fixed prefix, if the application knows it.
            final: whether the run ends with this call.

        Raises:
            UsageError: the server would ignore a part of it.
        """
        return tag(
            self._client, self._workflow, self.id, agent, fixed_tokens, final, steps=self.steps
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A thread of its own, because an event loop may be running in this one.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, self._end()).result()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._end()

    def _http(self) -> Http:
        return Http(self._url, self._api_key, _END_SECONDS)

    async def _end(self) -> None:
        try:
            async with self._http() as http:
                await end_run(http, self._client, self.id)
        except KvflowError as error:
            _log.warning("%s: %s", error.what, error.why)
