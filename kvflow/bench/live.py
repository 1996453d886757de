"""Benching a server that already runs: only modes, which can be switched on it."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvflow.bench.arms import Arm
from kvflow.bench.control import steering
from kvflow.bench.fleet import Narrate, Station
from kvflow.bench.measure import CLIENT, Access, take_turn
from kvflow.bench.plan import Block
from kvflow.bench.session import Facts, Stage
from kvflow.bench.setting import Setting
from kvflow.bench.trial import Trial
from kvflow.client.server import connect
from kvflow.engine.launch.interrupts import Interrupts
from kvflow.errors import KvflowError, UsageError
from kvflow.recipe.model import Mode

_LEAVING_S = 10.0


@dataclass(frozen=True, slots=True)
class LiveRig:
    """Uses one running server for all arms.

    Attributes:
        url: where it answers.
        access: how it is talked to.
    """

    url: str
    access: Access

    def check(self, settings: Sequence[Setting], arms: Sequence[Arm]) -> None:
        """Refuse what a running server cannot be put to.

        Raises:
            UsageError: a stock arm, or a pressure that only a start can set.
        """
        if stock := [arm.name for arm in arms if arm.mode is None]:
            raise UsageError(
                f"--url cannot bench {', '.join(stock)}",
                "a running server can only be switched between kvflow's modes",
                "--arms off,prefetch; or leave --url out, and servers are started",
            )
        if any(setting.pool_ratio or setting.link_ratio for setting in settings):
            raise UsageError(
                "--url goes with neither --pool-ratio nor --link-ratio, nor with a suite",
                "they are set when a server is started",
            )

    def key(self, setting: Setting) -> object:
        """All settings share the server."""
        return self.url

    @contextlib.contextmanager
    def opened(
        self, settings: Sequence[Setting], arms: Sequence[Arm], narrate: Narrate
    ) -> Iterator[Stage]:
        """The server as it is."""
        narrate(f"using {self.url}, whose cache is emptied for each mode")
        yield _LiveStage(Station(self.url), self.access)


@dataclass(slots=True)
class _LiveStage:
    station: Station
    access: Access
    found: Mode | None = None

    def server_of(self, arm: Arm) -> str:
        """The same for all."""
        return self.station.url

    async def prepare(self, setting: Setting) -> Facts:
        """Find out what the server is, and which mode it is in.

        Raises:
            UsageError: it runs without kvflow, or does not know the workflow.
            KvflowError: it does not answer.
        """
        key, recipe = self.access.api_key, setting.served
        async with connect(self.station.url, api_key=key) as server:
            url = self.station.url = server.info.url
            async with steering(url, key) as control:
                found = self.found or await control.mode()
                if found is None:
                    raise UsageError(
                        f"{url} runs without kvflow",
                        "there is no mode that could be switched",
                        f"kvflow serve --recipe {recipe.path} starts one with it",
                    )
                known = await control.workflows(CLIENT)
        if recipe.recipe.name not in known:
            raise UsageError(
                f"{url} does not know the workflow {recipe.recipe.name}",
                f"it knows {', '.join(sorted(known)) or 'none'}",
                f"kvflow serve --recipe {recipe.path} starts a server that does",
            )
        self.found = found
        return {
            "server": server.info.label,
            "mode_found": found,
            "environment_of": "client",
        }

    async def review(self, setting: Setting) -> Facts:
        """It is what it was."""
        return {}

    async def take_turn(self, setting: Setting, block: Block) -> Trial:
        """Measure one mode once."""
        return await take_turn(setting, block, self.station, self.access)

    def leave(self) -> None:
        """Put the mode back that was found, whatever signal comes meanwhile.

        Raises:
            KvflowError: the server does not take it any more.
        """
        if self.found is None:
            return
        try:
            with Interrupts():
                asyncio.run(self._put_back(self.found))
        except TimeoutError as error:
            raise self._stays(self.found, f"no answer within {_LEAVING_S:g} s") from error
        except KvflowError as error:
            raise self._stays(self.found, f"{error.what}: {error.why}") from error

    async def _put_back(self, mode: Mode) -> None:
        async with (
            asyncio.timeout(_LEAVING_S),
            steering(self.station.url, self.access.api_key) as control,
        ):
            await control.switch(mode)

    def _stays(self, mode: Mode, why: str) -> KvflowError:
        url = self.station.url
        key = ' -H "Authorization: Bearer $KVFLOW_API_KEY"' if self.access.api_key else ""
        return KvflowError(
            f"mode {mode} was not put back on {url}",
            why,
            f'curl -X PATCH {url}/kvflow/policy -d \'{{"mode": "{mode}"}}\'{key}',
        )
