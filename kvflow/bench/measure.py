"""One arm's turn: the right mode, a warm cache, then the measured runs."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvflow.bench.control import Control, difference, steering
from kvflow.bench.fleet import Station
from kvflow.bench.plain import chatting
from kvflow.bench.plan import Block
from kvflow.bench.setting import Setting
from kvflow.bench.trace import Trace, watching_a_run
from kvflow.bench.trial import Answers, Hits, Trial, first_failure, hits, what_was_said
from kvflow.bench.usage import cpu_seconds, watching
from kvflow.client.drive import Settings, drive
from kvflow.client.records import Ledger, RunRecord
from kvflow.client.server import Server, connect
from kvflow.errors import KvflowError
from kvflow.telemetry.nvml import NoGpus, open_gpus

if TYPE_CHECKING:
    from collections.abc import Sequence

CLIENT = "bench"
"""One client throughout: of one that stops, a run is expected for a while."""

_LEAST_ROUNDS, _MOST_ROUNDS = 2, 5
_SETTLED = 0.01  # by how much shares of two rounds may differ
_ALIKE = "answers"  # the filler that is the same for all arms


class TurnFailed(KvflowError):
    """A call of a turn failed. `what` is the call's own error, which names it."""


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
    except KvflowError as error:
        ended = station.server is not None and station.server.wait(1.0)
        cause = station.server.failure() if station.server is not None and ended else None
        trial.failure = f"{error.what}: {cause.what}" if cause else error.what
        station.holds = None
    return trial


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
            first = self._trial.warm_rounds == 0 and self._block.first
            filler = _ALIKE if first else f"{self._name}/warm-{self._trial.warm_rounds}"
            ledger = await self._round(filler)
            if first:
                self._trial.cold = what_was_said(ledger.calls)
            self._trial.warm_rounds += 1
            now = hits(ledger.calls)
            if self._trial.warm_rounds >= _LEAST_ROUNDS and before and _alike(before, now):
                return
            before = now

    async def _measure(self) -> None:
        lanes = self._setting.plain_lanes
        vocabulary = await self._server.vocabulary() if lanes else range(0)
        port, ledger = self._station.port, Ledger()
        counts_before = await self._control.counts()
        cpu_before = cpu_seconds(port) if port else None
        async with (
            watching(open_gpus() if port else NoGpus("the server was not started here")) as gpus,
            chatting(self._server, lanes, self._name, vocabulary) as plain,
        ):
            began = time.perf_counter()
            try:
                await drive(
                    self._setting.driven,
                    self._server,
                    self._settings(self._setting.runs, self._name),
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
        self._trial.whole = True
        self._trial.counts = difference(await self._control.counts(), counts_before)

    async def _trace(self) -> Trace:
        async with watching_a_run(self._control, self._station.link_log) as trace:
            trace.calls = (await self._round(f"{self._name}/trace")).calls
        return trace

    async def _answers(self, filler: str) -> Answers:
        return what_was_said((await self._round(filler)).calls)

    async def _round(self, filler: str) -> Ledger:
        """One run in each lane, not measured."""
        ledger = Ledger()
        settings = self._settings(self._setting.concurrency, filler)
        await drive(self._setting.driven, self._server, settings, [ledger])
        _check(first_failure(ledger), ledger.runs)
        return ledger

    def _settings(self, runs: int, filler: str) -> Settings:
        return Settings(
            client=CLIENT,
            runs=runs,
            concurrency=self._setting.concurrency,
            seed=self._setting.driven.recipe.workload.seed,
            filler=filler,
            exact=True,
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
