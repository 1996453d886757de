"""Driving a workflow: its runs against a server, as a real application would."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

from kvflow.client.dynamic import DynamicPart
from kvflow.client.prompts import FixedParts, RunPrompts, fixed_parts
from kvflow.client.records import CallRecord, CallState, Ledger, Observer, Result, RunRecord
from kvflow.client.server import Server
from kvflow.client.stream import Clock
from kvflow.client.tagging import CustomParams, tag
from kvflow.errors import KvflowError, UsageError
from kvflow.recipe.load import Loaded
from kvflow.workload import Call, Walk, plan_run

_ENDING_S = 2.0  # an interrupted drive does not wait longer for a server that does not answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a workflow is driven.

    Attributes:
        client: the application that the runs belong to, as in the tag.
        runs: how many.
        concurrency: most runs in flight at once.
        seed: draws the path of every run, its lengths and its filler.
        filler: None: calls carry what their predecessors said. A text: seeded filler instead, other
            filler for another text (one an arm of a bench).
        exact: whether answers have exactly `output_tokens`, else at most so many.
        first_run: index of the first run; each index walks a path of its own, also below 0.
        stop_at_failure: begin no run after one that failed.
    """

    client: str
    runs: int
    concurrency: int
    seed: int
    filler: str | None = None
    exact: bool = False
    first_run: int = 0
    stop_at_failure: bool = False


async def drive(
    loaded: Loaded,
    server: Server,
    settings: Settings,
    observers: Sequence[Observer] = (),
    clock: Clock = time.perf_counter,
    began: float | None = None,
) -> Result:
    """Walk a workflow through all its runs.

    Calls that may start together are made together. A call that fails ends its run: what is in
    flight there is still answered, nothing new is sent; other runs in flight go on. If the drive is
    cancelled, every call in flight is noted as failed before the cancellation goes on, so that an
    observer (a `Ledger`) holds all that was measured.

    Args:
        loaded: the recipe.
        server: to drive it against.
        settings: how.
        observers: are told of every change.
        clock: seconds.
        began: what the clock showed at 0 of all times; None: when the first run begins.

    Returns:
        A record of every call and every run.

    Raises:
        UsageError: the recipe or the settings need SGLang and the server is another; or no server
            would take the client's name in a tag.
        KvflowError: the server fails before the first run.
    """
    _check_abilities(loaded, server, settings)
    tag(settings.client, loaded.recipe.name, run="any", agent="any")  # refused now or never
    ids = any(spec.prompt is None for spec in loaded.recipe.agents.values())
    vocabulary = await server.vocabulary() if ids else range(0)
    ledger = Ledger()
    work = _Work(
        loaded=loaded,
        server=server,
        settings=settings,
        observers=(ledger, *observers),
        clock=clock,
        fixed=fixed_parts(loaded, vocabulary),
        dynamic=DynamicPart(server, vocabulary, settings.seed, settings.filler),
        name=uuid4().hex[:8],
        began=clock() if began is None else began,
    )
    indices = iter(range(settings.first_run, settings.first_run + settings.runs))
    async with asyncio.TaskGroup() as lanes:
        for _ in range(settings.concurrency):
            lanes.create_task(_drive_lane(work, indices))
    return Result(ledger.calls, ledger.runs, clock() - work.began)


def _check_abilities(loaded: Loaded, server: Server, settings: Settings) -> None:
    if server.is_sglang:
        return
    in_ids = [name for name, spec in loaded.recipe.agents.items() if spec.prompt is None]
    if in_ids:
        raise UsageError(
            f"agents without a prompt file need an SGLang server: {', '.join(in_ids)}",
            f"{server.info.url} does not take prompts in token ids",
        )
    if settings.exact:
        raise UsageError(
            "exact output lengths need an SGLang server", f"{server.info.url} is another"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What all runs of a drive share."""

    loaded: Loaded
    server: Server
    settings: Settings
    observers: Sequence[Observer]
    clock: Clock
    fixed: FixedParts
    dynamic: DynamicPart
    name: str  # makes run ids unique among drives
    began: float

    def now(self) -> float:
        return self.clock() - self.began


async def _drive_lane(work: _Work, indices: Iterator[int]) -> None:
    """One run after another, taking the next index that no other lane took."""
    run: _Run | None = None
    try:
        for index in indices:
            if run is not None and run.is_open:
                await _end(work, run, expect_next=True)
            run = _Run(work, index)
            await run.drive()
            if run.failed and work.settings.stop_at_failure:
                deque(indices, maxlen=0)  # nothing is left for any lane
    finally:
        if run is not None:
            await _end(work, run, expect_next=False)


async def _end(work: _Work, run: "_Run", expect_next: bool) -> None:
    """Leave no run behind that the server goes on to expect. It costs speed at most if it does."""
    with contextlib.suppress(KvflowError, TimeoutError):
        async with asyncio.timeout(_ENDING_S):
            await work.server.end_run(work.settings.client, run.id, expect_next)


class _Run:
    def __init__(self, work: _Work, index: int) -> None:
        self._work, self._index = work, index
        self.id = f"{work.name}-{index}"
        calls = plan_run(work.loaded, index, work.settings.seed)
        self._walk = Walk(work.loaded.graph, calls)
        self._prompts = RunPrompts(calls, work.fixed, work.dynamic)
        self._records = [CallRecord(call, self.id) for call in calls]
        self.failed = False
        self._said_final = False

    @property
    def is_open(self) -> bool:
        """Whether the server cannot know that the run is over: no call said so, or one failed."""
        return self.failed or not self._said_final

    async def drive(self) -> None:
        for record in self._records:
            self._enter(record, CallState.WAITING)
        started = self._work.now()
        try:
            await self._prepare()
            started = self._work.now()
            async with asyncio.TaskGroup() as group:
                self._start_ready(group)
        finally:
            seconds = self._work.now() - started
            ended = RunRecord(self.id, self._index, started, seconds, self._walk.done)
            for observer in self._work.observers:
                observer.run_ended(ended)

    async def _prepare(self) -> None:
        """Make what can be made of the prompts before the clock of the run starts."""
        for record in self._records:
            try:
                await self._prompts.prepare(record.call)
            except KvflowError as error:
                self._fail(record, error)
                break

    def _start_ready(self, group: asyncio.TaskGroup) -> None:
        if not self.failed:
            for call in self._walk.ready():
                group.create_task(self._make_call(self._records[call.index], group))

    async def _make_call(self, record: CallRecord, group: asyncio.TaskGroup) -> None:
        call = record.call
        try:
            prompt = await self._prompts.prompt(call)
            record.started_s = self._work.now()
            self._enter(record, CallState.PREFILL)
            record.answer = await self._work.server.ask(
                prompt,
                max_tokens=call.output_tokens,
                what=f"call {call.id} ({call.agent})",
                tag=self._tag(call),
                exact=self._work.settings.exact,
                on_first_token=lambda: self._enter(record, CallState.DECODING),
            )
        except KvflowError as error:
            self._fail(record, error)
        except asyncio.CancelledError as error:
            self._fail(record, error)
            raise
        else:
            self._prompts.note(call, prompt, record.answer)
            self._walk.finished(call)
            self._enter(record, CallState.DONE)
            self._start_ready(group)

    def _tag(self, call: Call) -> CustomParams:
        recipe = self._work.loaded.recipe
        final = self._walk.is_last(call)
        self._said_final |= final
        return tag(
            self._work.settings.client,
            recipe.name,
            self.id,
            call.agent,
            fixed_tokens=recipe.agents[call.agent].fixed_tokens,
            final=final,
        )

    def _fail(self, record: CallRecord, error: KvflowError | asyncio.CancelledError) -> None:
        self.failed = True
        if isinstance(error, KvflowError):
            record.error = f"{error.what}: {error.why}" if error.why else error.what
        else:
            record.error = "interrupted"
        self._enter(record, CallState.FAILED)

    def _enter(self, record: CallRecord, state: CallState) -> None:
        record.state = state
        for observer in self._work.observers:
            observer.call_changed(record)
