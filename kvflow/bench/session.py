"""A whole bench: every setting, every repeat, every arm in turn; and what is left if it breaks."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

from kvflow.bench.arms import Arm
from kvflow.bench.plan import Block, Effort, Pace, turns
from kvflow.bench.setting import Setting, Suite
from kvflow.bench.trial import Trial
from kvflow.errors import KvflowError

Facts = dict[str, float | int | str | None]
"""What was set up for a setting, by name: pools, link, what recomputing costs."""


class Stage(Protocol):
    """Where arms can be measured: servers that are up, or can be started."""

    def server_of(self, arm: Arm) -> str:
        """Name of an arm's server; the turns of arms that share one are next to each other."""

    async def prepare(self, setting: Setting) -> Facts:
        """Put the stage under a setting's pressure, and say what that came to.

        Raises:
            KvflowError: it cannot be done.
        """

    async def review(self, setting: Setting) -> Facts:
        """After the last turn of a setting: what of that pressure has changed meanwhile."""

    async def take_turn(self, setting: Setting, block: Block) -> Trial:
        """Measure one arm once; a failure is told in the trial."""

    def leave(self) -> None:
        """Put back what was found. Called outside asyncio, where nothing cancels it.

        Raises:
            KvflowError: it cannot be put back.
        """


class Rig(Protocol):
    """Makes stages."""

    def key(self, setting: Setting) -> object:
        """Settings with equal keys, next to each other, share a stage."""

    def opened(
        self, settings: Sequence[Setting], arms: Sequence[Arm], narrate: Callable[[str], None]
    ) -> AbstractContextManager[Stage]:
        """A stage for settings of one key, for as long as the context lasts.

        Raises:
            KvflowError: it cannot be set up.
        """


class Watch(Protocol):
    """Who is told how a bench goes on."""

    def narrate(self, text: str) -> None:
        """What is being done now; told again and again."""

    def turn_begins(self, block: Block, pace: Pace) -> None:
        """An arm's turn begins."""

    def turn_ended(self, block: Block, trial: Trial, pace: Pace) -> None:
        """An arm's turn is over."""


@dataclass(slots=True)
class Measured:
    """What is known of one setting, at any time.

    Attributes:
        setting: what was measured.
        facts: what was set up.
        trials: every turn, those that failed among them.
        broken: arms that take no more turns, each with its reason.
    """

    setting: Setting
    facts: Facts = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """What is known of a bench, at any time and after any end.

    Attributes:
        suite: what was to be measured.
        arms: likewise.
        effort: likewise.
        measured: by setting, in order.
        interrupted: whether somebody ended it early.
        error: what ended it early otherwise.
        left_undone: what could not be put back after it, and why.
    """

    suite: Suite
    arms: Sequence[Arm]
    effort: Effort
    measured: list[Measured] = field(default_factory=list)
    interrupted: bool = False
    error: KvflowError | None = None
    left_undone: KvflowError | None = None

    @property
    def broken(self) -> list[tuple[str, str, str]]:
        """What failed: setting, arm and reason."""
        return [
            (one.setting.name, arm, why) for one in self.measured for arm, why in one.broken.items()
        ]


def run(outcome: Outcome, rig: Rig, watch: Watch) -> None:
    """Measure everything; whatever ends it, `outcome` holds what was measured until then."""
    settings = outcome.suite.settings
    pace = Pace(len(settings) * outcome.effort.repeats * len(outcome.arms))
    try:
        for _, group in groupby(settings, rig.key):
            together = list(group)
            with rig.opened(together, outcome.arms, watch.narrate) as stage:
                try:
                    asyncio.run(_all(outcome, together, stage, watch, pace))
                finally:
                    _leave(outcome, stage)
    except (KeyboardInterrupt, asyncio.CancelledError):
        outcome.interrupted = True
    except KvflowError as error:
        outcome.error = error
    except OSError as error:
        outcome.error = KvflowError("the bench cannot go on", str(error))


async def _all(
    outcome: Outcome, settings: Sequence[Setting], stage: Stage, watch: Watch, pace: Pace
) -> None:
    for setting in settings:
        measured = Measured(setting)
        outcome.measured.append(measured)
        watch.narrate(f"setting up {setting.name}")
        measured.facts = await stage.prepare(setting)
        await _setting(outcome, measured, stage, watch, pace)
        measured.facts |= await stage.review(setting)


def _leave(outcome: Outcome, stage: Stage) -> None:
    try:
        stage.leave()
    except KvflowError as error:
        outcome.left_undone = error


async def _setting(
    outcome: Outcome, measured: Measured, stage: Stage, watch: Watch, pace: Pace
) -> None:
    began = repeat_began = time.monotonic()
    latest_s = 0.0
    for repeat in range(outcome.effort.repeats):
        last = outcome.effort.is_last(repeat, repeat_began - began, latest_s)
        blocks = turns(measured.setting.name, outcome.arms, repeat, last, stage.server_of)
        for block in blocks:
            if block.arm.name in measured.broken:
                pace.skip(1)
            else:
                await _turn(outcome, measured, block, stage, watch, pace)
        if last:
            pace.skip((outcome.effort.repeats - 1 - repeat) * len(outcome.arms))
            return
        latest_s, repeat_began = time.monotonic() - repeat_began, time.monotonic()


async def _turn(
    outcome: Outcome, measured: Measured, block: Block, stage: Stage, watch: Watch, pace: Pace
) -> None:
    watch.turn_begins(block, pace)
    began = time.monotonic()
    trial = await stage.take_turn(measured.setting, block)
    pace.note(block.arm.name, time.monotonic() - began)
    measured.trials.append(trial)
    if trial.failure:
        measured.broken[block.arm.name] = f"repeat {block.repeat + 1}: {trial.failure}"
    watch.turn_ended(block, trial, pace)
