"""One arm's turn: the right mode, a warm cache, then the measured runs."""

import os
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvflow.bench.control import Control, difference, steering
from kvflow.bench.fleet import Station
from kvflow.bench.plain import chatting
from kvflow.bench.plan import Block
from kvflow.bench.setting import Setting
from kvflow.bench.trace import Trace, watching_a_run
from kvflow.bench.trial import Answers, Hits, Trial, first_failure, hits, what_was_said
from kvflow.bench.usage import cpu_seconds, server_pids, visible_gpus, watching
from kvflow.client.drive import Settings, drive
from kvflow.client.records import Ledger, RunRecord
from kvflow.client.server import Server, connect
from kvflow.client.warm import warm
from kvflow.errors import KvflowError
from kvflow.telemetry.nvml import NoGpus, open_gpus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from kvflow.bench.plain import PlainTraffic
    from kvflow.telemetry.sampler import GpuProbe

CLIENT = "bench"
"""One client throughout: of one that stops, a run is expected for a while."""

_LEAST_ROUNDS, _MOST_ROUNDS = 2, 5
_SETTLED = 0.01  # by how much shares of two rounds may differ
_ALIKE = "answers"  # the filler that is the same for all arms


class TurnFailed(KvflowError):
    """Nothing was measured, as a rule since a call failed: `what` is its error, which names it."""


@dataclass(frozen=True, slots=True)
class Access:
    """How servers are talked to.

    Attributes:
        api_key: that they want, if any.
        timeout_s: what one call may take in all.
    """

    api_key: str | None = None
    timeout_s: float = 120.0


async def take_turn(setting: Setting, block: Block, station: Station, access: Access) -> Trial:
    """Measure one arm once.

    The cache is emptied and warmed whenever the server was used for something else meanwhile.
    Filler is seeded by setting, arm and repeat, so that no prompt was ever seen before.

    Returns:
        What was measured; of a turn that failed, what was measured until then, and why.
    """
    trial = Trial(arm=block.arm.name, repeat=block.repeat)
    try:
        async with (
            connect(station.url, api_key=access.api_key, timeout_s=access.timeout_s) as server,
            steering(station.url, access.api_key) as control,
        ):
            await _Turn(setting, block, station, server, control, trial).take()
    except Exception as error:  # noqa: BLE001 - only this arm is out: others go on
        cause = station.death()
        what = _in_words(error)
        trial.failure = f"{what}: {cause.what}" if cause else what
        station.holds = None
    return trial


def _in_words(error: Exception) -> str:
    if isinstance(error, KvflowError):
        return error.what
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


class _Turn:
    def __init__(
        self,
        setting: Setting,
        block: Block,
        station: Station,
        server: Server,
        control: Control,
        trial: Trial,
    ) -> None:
        self._setting, self._block, self._station = setting, block, station
        self._server, self._control, self._trial = server, control, trial
        self._name = f"{setting.name}/{block.arm.name}/{block.repeat}"

    async def take(self) -> None:
        holds = (self._setting.name, self._block.arm.name)
        if self._station.holds != holds:
            await self._prepare()
            self._station.holds = holds
        await self._measure()
        if self._block.last:
            self._trial.trace = await self._trace()
            self._trial.again = await self._answers(_ALIKE)

    async def _prepare(self) -> None:
        self._station.holds = None
        if self._block.arm.mode is not None:
            await self._control.switch(self._block.arm.mode)
        await self._control.flush()
        before: Hits | None = None
        while self._trial.warm_rounds < _MOST_ROUNDS:
            now = hits((await self._warm_round()).calls)
            self._trial.warm_rounds += 1
            if self._trial.warm_rounds >= _LEAST_ROUNDS and before and _alike(before, now):
                return
            before = now

    async def _warm_round(self) -> Ledger:
        """One more round; after the first one every agent's prefix was computed, called or not."""
        number = self._trial.warm_rounds
        if number == 0 and self._block.first:
            ledger = await self._round(_ALIKE)
            self._trial.cold = what_was_said(ledger.calls)
        else:
            # Measured runs count from 0 on: these are others, and others in each round.
            ahead = self._block.repeat * _MOST_ROUNDS + number + 1
            filler = f"{self._name}/warm-{number}"
            async with self._chats(filler) as plain:
                ledger = await self._round(filler, -ahead * self._setting.concurrency)
            _check(next(iter(plain.errors), ""), ledger.runs)
        if number == 0:
            called = {call.call.agent for call in ledger.calls}
            others = self._setting.driven.recipe.agents.keys() - called
            async for _ in warm(self._setting.driven, self._server, others):
                pass
        return ledger

    async def _measure(self) -> None:
        port, runs, ledger = self._station.port, self._setting.runs, Ledger()
        counts_before = await self._control.counts()
        cpu_before, pids = (cpu_seconds(port), server_pids(port)) if port else (None, set())
        async with (
            watching(self._gpus(), pids, visible_gpus(os.environ)) as gpus,
            self._chats(self._name) as plain,
        ):
            began = time.perf_counter()
            try:
                await drive(
                    self._setting.driven,
                    self._server,
                    self._settings(runs, self._name, self._block.repeat * runs),
                    [ledger],
                )
            finally:
                self._trial.seconds = time.perf_counter() - began
                self._trial.calls, self._trial.runs = ledger.calls, ledger.runs
                self._trial.plain = plain.answers
                self._trial.gpus = gpus
        cpu_after = cpu_seconds(port) if port else None
        if cpu_before is not None and cpu_after is not None:
            self._trial.cpu_s = cpu_after - cpu_before
        _check(first_failure(ledger) or next(iter(plain.errors), ""), ledger.runs)
        if not ledger.calls:
            name = self._setting.driven.recipe.name
            raise TurnFailed(f"its runs made no call: {name} ended them at their start")
        self._trial.whole = True
        self._trial.counts = difference(await self._control.counts(), counts_before)

    @asynccontextmanager
    async def _chats(self, name: str) -> "AsyncIterator[PlainTraffic]":
        """The plain chats beside the workflow, if the setting has any."""
        lanes = self._setting.plain_lanes
        vocabulary = await self._server.vocabulary() if lanes else range(0)
        async with chatting(self._server, lanes, name, vocabulary) as plain:
            yield plain

    def _gpus(self) -> "GpuProbe":
        return open_gpus() if self._station.on_gpu else NoGpus("no server of ours on a GPU")

    async def _trace(self) -> Trace:
        began = time.perf_counter()
        async with watching_a_run(self._control, self._station.link_log, began) as trace:
            trace.calls = (await self._round(f"{self._name}/trace", began=began)).calls
        return trace

    async def _answers(self, filler: str) -> Answers:
        return what_was_said((await self._round(filler)).calls)

    async def _round(self, filler: str, first_run: int = 0, began: float | None = None) -> Ledger:
        """One run in each lane, not measured."""
        ledger = Ledger()
        settings = self._settings(self._setting.concurrency, filler, first_run)
        await drive(self._setting.driven, self._server, settings, [ledger], began=began)
        _check(first_failure(ledger), ledger.runs)
        return ledger

    def _settings(self, runs: int, filler: str, first_run: int) -> Settings:
        return Settings(
            client=CLIENT,
            runs=runs,
            concurrency=self._setting.concurrency,
            seed=self._setting.driven.recipe.workload.seed,
            filler=filler,
            exact=True,
            first_run=first_run,
            stop_at_failure=True,
        )


def _check(failure: str, runs: "Sequence[RunRecord]") -> None:
    if failure:
        raise TurnFailed(failure)
    if not any(run.ok for run in runs):
        raise TurnFailed("no run went through")


def _alike(one: Hits, other: Hits) -> bool:
    return (
        abs(one.device_share - other.device_share) <= _SETTLED
        and abs(one.host_share - other.host_share) <= _SETTLED
    )
