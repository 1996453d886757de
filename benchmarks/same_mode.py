"""How often `kvflow bench` claims a difference where there is none: a mode against itself.

    python benchmarks/same_mode.py --trials 20 --repeats 5

Two servers in the same mode, measured as two arms of a bench are, in turns and in one go; then cut
into trials of as many repeats as a bench has. Of 95 % intervals one in twenty may claim something.
"""

import argparse
import contextlib
from collections import Counter
from collections.abc import Iterable
from unittest.mock import patch

from rich.console import Console

from kvflow.bench.arms import ARMS, Arm
from kvflow.bench.local import LocalRig
from kvflow.bench.measure import Access
from kvflow.bench.plan import Block, Effort, Pace
from kvflow.bench.session import Outcome, run
from kvflow.bench.setting import Setting, Suite
from kvflow.bench.shape import Shape, reshape
from kvflow.bench.stats import Ratio, paired
from kvflow.bench.trial import Trial
from kvflow.recipe.load import find, load

PAIR = {name: Arm(name, "prefetch", "kvflow: prefetch") for name in ("one", "other")}
console = Console(highlight=False, stderr=True)


class Lines:
    """Tells of every tenth turn."""

    def narrate(self, text: str) -> None:
        """Servers start once; nobody waits for more."""

    def turn_begins(self, block: Block, pace: Pace) -> None:
        """See `turn_ended`."""

    def turn_ended(self, block: Block, trial: Trial, pace: Pace) -> None:
        """A turn is over."""
        if block.repeat % 10 == 0:
            console.print(f"repeat {block.repeat + 1}, {block.arm.name}: {trial.run_s:.2f} s")


def ratios(trials: Iterable[Trial], repeats: int, what: str) -> list[Ratio]:
    """What each bench of so many repeats would have found."""
    times = {name: [getattr(t, what) for t in trials if t.arm == name] for name in PAIR}
    one, other = times["one"], times["other"]
    starts = range(0, len(one) - repeats + 1, repeats)
    return [paired(one[i : i + repeats], other[i : i + repeats]) for i in starts]


def main() -> None:
    """Measure, and print how many trials claimed what."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    loaded = reshape(load(find("sequential-10")), Shape(output=8))
    setting = Setting(
        name="same mode",
        served=loaded,
        driven=loaded,
        pool_ratio=0.43,
        link_ratio=0.5,
        runs=1,
        concurrency=1,
    )
    effort = Effort(options.trials * options.repeats)
    outcome = Outcome(Suite("same-mode", "", [setting]), list(PAIR.values()), effort)
    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.dict(ARMS, PAIR))
        run(outcome, LocalRig("cpu", None, Access()), Lines())
    if outcome.error is not None:
        raise outcome.error
    for what, field in (("whole run", "run_s"), ("first token", "ttft_s")):
        found = ratios(outcome.measured[0].trials, options.repeats, field)
        claims = Counter(ratio.claim.value for ratio in found)
        print(f"{what}: {dict(claims)}; means {min(r.mean for r in found):.3f} to "
              f"{max(r.mean for r in found):.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
