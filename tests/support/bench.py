"""Benches without servers: turns that are drawn, and figures made of them."""

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.recipes import make_recipe

from kvflow.bench import document, session
from kvflow.bench.arms import ARMS, Arm
from kvflow.bench.goodput import Limits
from kvflow.bench.plan import Block, Effort, Pace
from kvflow.bench.result import Result
from kvflow.bench.session import Facts, Measured, Outcome
from kvflow.bench.setting import Setting, Suite
from kvflow.bench.trial import Trial
from kvflow.client.exchange import Answer
from kvflow.client.records import CallRecord, CallState, RunRecord
from kvflow.errors import KvflowError
from kvflow.workload import plan_run

FIXED, DYNAMIC, OUTPUT = 100, 10, 5


def make_setting(folder: Path, name: str = "flow", **changes: object) -> Setting:
    """Two agents in a row, with prefixes of 100 tokens."""
    agents: dict[str, dict[str, object]] = {
        "a": {"fixed_tokens": FIXED, "output_tokens": OUTPUT},
        "b": {"fixed_tokens": FIXED, "output_tokens": OUTPUT, "after": "a"},
    }
    loaded = make_recipe(folder, agents, workload={"dynamic_tokens": DYNAMIC})
    given = {"runs": 1, "concurrency": 1, "pool_ratio": 0.6, "link_ratio": 0.5, **changes}
    return Setting(name=name, served=loaded, driven=loaded, **given)  # type: ignore[arg-type]


def make_outcome(setting: Setting, arms: str, repeats: int = 3, **more: object) -> Outcome:
    """A bench of one setting, before it has begun."""
    chosen = [ARMS[name] for name in arms.split(",")]
    return Outcome(Suite("flow", "A flow.", [setting]), chosen, Effort(repeats, **more))  # type: ignore[arg-type]


def make_answer(
    ttft_s: float = 0.1,
    decode_s: float = 0.2,
    device: int = FIXED,
    host: int = 0,
    output: int = OUTPUT,
) -> Answer:
    """An answer to a call of `make_setting`."""
    return Answer(
        text="noise",
        output_ids=tuple(range(output)),
        finish_reason="length",
        ttft_s=ttft_s,
        latency_s=ttft_s + decode_s,
        prompt_tokens=FIXED + DYNAMIC,
        output_tokens=output,
        cached_tokens=device + host,
        cached_device=device,
        cached_host=host,
        token_times_s=tuple(decode_s * n / (output - 1) for n in range(1, output)),
    )


def make_trial(
    setting: Setting, arm: str, repeat: int, answer: Answer | None = None, **more: object
) -> Trial:
    """A turn in which every call was answered alike, one after another."""
    answer = answer or make_answer()
    calls, runs, now = [], [], 0.0
    for run in range(setting.runs):
        began = now
        for call in plan_run(setting.driven, run, 0):
            record = CallRecord(call, f"r{run}", CallState.DONE, now, answer)
            calls.append(record)
            now += answer.latency_s
        runs.append(RunRecord(f"r{run}", run, began, now - began, True))
    given = {"seconds": now, "warm_rounds": 2, "whole": True, **more}
    return Trial(arm=arm, repeat=repeat, calls=calls, runs=runs, **given)  # type: ignore[arg-type]


@dataclass
class DrawnStage:
    """Turns whose times are drawn around what an arm takes.

    Attributes:
        seconds: of a call by arm, on average.
        noise: standard deviation of the logarithms.
        seed: draws.
        faults: by (arm, repeat), why a turn fails, or what it raises.
        stays: why what was found cannot be put back; None if it can.
    """

    seconds: Mapping[str, float]
    noise: float = 0.0
    seed: int = 0
    faults: Mapping[tuple[str, int], str | BaseException] = field(default_factory=dict)
    stays: KvflowError | None = None
    turns: list[tuple[str, str, int]] = field(default_factory=list)
    left: int = 0

    def server_of(self, arm: Arm) -> str:
        return arm.name

    async def prepare(self, setting: Setting) -> Facts:
        return {"recompute_ms": 80.0}

    async def review(self, setting: Setting) -> Facts:
        return {"recompute_after_ms": 70.0}

    async def take_turn(self, setting: Setting, block: Block) -> Trial:
        self.turns.append((setting.name, block.arm.name, block.repeat))
        fault = self.faults.get((block.arm.name, block.repeat))
        if isinstance(fault, BaseException):
            raise fault
        if fault:
            return Trial(arm=block.arm.name, repeat=block.repeat, failure=fault)
        # What the machine does meanwhile is the same for all arms of a repeat, and large.
        drift = random.Random(f"{self.seed}/{block.repeat}").lognormvariate(0, 0.5)
        own = random.Random(f"{self.seed}/{block.repeat}/{block.arm.name}")
        factor = drift * own.lognormvariate(0, self.noise)
        seconds = self.seconds[block.arm.name] * factor
        return make_trial(
            setting, block.arm.name, block.repeat, make_answer(seconds / 3, seconds * 2 / 3)
        )

    def leave(self) -> None:
        self.left += 1
        if self.stays is not None:
            raise self.stays


@dataclass
class DrawnRig:
    """Opens one and the same stage."""

    stage: DrawnStage
    opened_for: list[list[str]] = field(default_factory=list)
    fault: KvflowError | None = None
    key: Callable[[Setting], object] = lambda setting: setting.name

    @contextlib.contextmanager
    def opened(
        self, settings: Sequence[Setting], arms: Sequence[Arm], narrate: Callable[[str], None]
    ) -> Iterator[DrawnStage]:
        if self.fault:
            raise self.fault
        self.opened_for.append([setting.name for setting in settings])
        yield self.stage


class Silent:
    """Watches without a word."""

    def narrate(self, text: str) -> None: ...

    def turn_begins(self, block: Block, pace: Pace) -> None: ...

    def turn_ended(self, block: Block, trial: Trial, pace: Pace) -> None: ...


SECONDS = {"lru": 2.0, "hicache": 1.0, "limit": 0.45, "full": 0.5}


def make_result(
    folder: Path,
    *names: str,
    arms: str = "lru,hicache,full",
    limits: Limits | None = None,
    **changes: object,
) -> tuple[Result, list[Measured]]:
    """A finished bench without servers: its result, and what was measured."""
    settings = [make_setting(folder, name, **changes) for name in names or ("flow",)]
    outcome = make_outcome(settings[0], arms)
    outcome.suite = Suite("flow", "A flow.", settings)
    session.run(outcome, DrawnRig(DrawnStage(SECONDS, noise=0.02)), Silent())
    result = document.result(outcome, {"cores": 2, "gpus": None}, "kvflow bench flow", limits)
    assert result is not None
    return result, outcome.measured
