"""What `kvflow bench` shows while it runs: what it does now, what it found, and the time left."""

from types import TracebackType
from typing import Self

from kvflow.bench.plan import Block, Pace
from kvflow.bench.trial import Trial, hits
from kvflow.cli.serve_narrator import Narrator


class Progress:
    """Narrates a bench on stderr."""

    def __init__(self) -> None:
        self._narrator = Narrator()
        self._turn = ""

    def __enter__(self) -> Self:
        self._narrator.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._narrator.done()
        self._narrator.__exit__(kind, error, trace)

    def narrate(self, text: str) -> None:
        """What is being done now, and in whose turn."""
        self._narrator.phase(f"{self._turn}: {text}" if self._turn else text)

    def turn_begins(self, block: Block, pace: Pace) -> None:
        """An arm's turn begins: say which, and how long all will take."""
        left = pace.left_s()
        ending = "" if left is None else f", {duration(left)} left"
        self._turn = (
            f"{block.setting}: {block.arm.name}, repeat {block.repeat + 1} "
            f"({pace.done + 1} of {pace.total}{ending})"
        )
        self._narrator.phase(self._turn)

    def turn_ended(self, block: Block, trial: Trial, pace: Pace) -> None:
        """An arm's turn is over: say what it found."""
        self._narrator.done()
        self._turn = ""
        if trial.failure:
            self._narrator.say(f"  failed: {trial.failure}")
        if not trial.whole:
            return
        found = hits(trial.calls)
        self._narrator.say(
            f"  a run {trial.run_s:.2f} s, first token {trial.ttft_s * 1e3:.0f} ms; "
            f"{found.device_share:.0%} found on the device, {found.host_share:.0%} on the host"
        )


def duration(seconds: float) -> str:
    """About how long, in words."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h"
