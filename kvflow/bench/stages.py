"""The servers of a bench under a setting's pressure, and what that pressure came to."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kvflow.bench.arms import Arm
from kvflow.bench.control import steering
from kvflow.bench.fleet import Fleet, SideBySide, Station
from kvflow.bench.measure import take_turn
from kvflow.bench.model import kv_bytes_per_token
from kvflow.bench.plan import Block
from kvflow.bench.regime import link_gbps, recompute_seconds
from kvflow.bench.session import Facts
from kvflow.bench.setting import Setting
from kvflow.bench.trial import Trial
from kvflow.client.server import connect
from kvflow.errors import KvflowError

if TYPE_CHECKING:
    from kvflow.bench.local import LocalRig

_IDLE_S = 10.0
EMULATED = "CPU engine, emulated link"
"""The label of every figure that was made with the CPU engine."""


@dataclass(slots=True)
class LocalStage:
    """Servers that the bench starts."""

    rig: "LocalRig"
    fleet: Fleet

    def server_of(self, arm: Arm) -> str:
        """As the fleet says."""
        return self.fleet.server_of(arm)

    async def prepare(self, setting: Setting) -> Facts:
        """Nothing but sizes, which the servers are started with."""
        return self.rig.facts(setting)

    async def review(self, setting: Setting) -> Facts:
        """Sizes stay what they are."""
        return {}

    async def take_turn(self, setting: Setting, block: Block) -> Trial:
        """Measure one arm once, on its server."""
        try:
            station = await self.fleet.station(block.arm)
        except KvflowError as error:
            why = ", ".join(part for part in (error.what, error.why, error.hint) if part)
            failure = f"it has no server: {why}"
            return Trial(arm=block.arm.name, repeat=block.repeat, failure=failure)
        return await take_turn(setting, block, station, self.rig.access)

    def leave(self) -> None:
        """Nothing to put back: the servers end with the stage."""


@dataclass(slots=True)
class CpuStage(LocalStage):
    """The same with an emulated link, whose speed stands in a file.

    Attributes:
        link: that file.
        recompute_s: what recomputing costs, by tokens.
    """

    fleet: SideBySide
    link: Path
    recompute_s: dict[int, float] = field(default_factory=dict)

    async def prepare(self, setting: Setting) -> Facts:
        """Measure what recomputing a prefix costs, and set the link by it."""
        facts = self.rig.facts(setting) | {"label": EMULATED, "dtype": self.rig.dtype}
        tokens = int(facts["longest_prefix_tokens"] or 0)
        if tokens not in self.recompute_s:
            self.recompute_s[tokens] = await self._recompute(tokens)
        facts["recompute_ms"] = self.recompute_s[tokens] * 1e3
        if setting.link_ratio is not None:
            model = self.rig.model_of(setting.served)
            prefix_bytes = tokens * kv_bytes_per_token(model, self.rig.dtype)
            gbps = link_gbps(setting.link_ratio, self.recompute_s[tokens], prefix_bytes)
            self.link.write_text(str(gbps))
            facts["link_gbps"] = gbps
        return facts

    async def review(self, setting: Setting) -> Facts:
        """What recomputing costs afterwards, when a machine that was busy may be idle."""
        if setting.link_ratio is None:
            return {}
        tokens = int(self.rig.facts(setting)["longest_prefix_tokens"] or 0)
        try:
            return {"recompute_after_ms": await self._recompute(tokens) * 1e3}
        except KvflowError:  # what was measured stands without it
            return {}

    async def take_turn(self, setting: Setting, block: Block) -> Trial:
        """Measure one arm once; a server that hangs in it takes no other turn."""
        trial = await LocalStage.take_turn(self, setting, block)
        if trial.failure and block.arm.name not in self.fleet.failed:
            await self._end_if_stuck(block.arm.name, trial.failure)
        return trial

    async def _recompute(self, tokens: int) -> float:
        """Measured on stock HiCache, or on another server where that cannot.

        Raises:
            KvflowError: on none.
        """
        causes, hint = {arm: error.what for arm, error in self.fleet.failed.items()}, ""
        for arm in sorted(self.fleet.stations, key=lambda arm: arm != "hicache"):
            if arm in causes:
                continue
            try:
                return await self._measure_recompute(self.fleet.stations[arm], tokens)
            except KvflowError as error:
                causes[arm], hint = f"{error.what}, {error.why}", error.hint
                await self._end_if_stuck(arm, error.what)
        why = "; ".join(f"{arm}: {cause}" for arm, cause in causes.items())
        raise KvflowError("what recomputing costs cannot be measured", why, hint)

    async def _measure_recompute(self, gauge: Station, tokens: int) -> float:
        self.link.write_text("")
        gauge.holds = None
        async with (
            connect(gauge.url, timeout_s=self.rig.access.timeout_s) as server,
            steering(gauge.url) as control,
        ):
            await control.flush()
            return await recompute_seconds(server, tokens, seed=tokens)

    async def _end_if_stuck(self, arm: str, why: str) -> None:
        """End a server that is not idle after a failure: it would go on working beside others."""
        station = self.fleet.stations[arm]
        with contextlib.suppress(KvflowError, TimeoutError):
            async with asyncio.timeout(_IDLE_S), steering(station.url) as control:
                await control.flush()  # refused while something runs
                return
        cause = station.death()
        self.fleet.leave_out(
            arm, KvflowError("it hung or died, and was ended", cause.what if cause else why)
        )
