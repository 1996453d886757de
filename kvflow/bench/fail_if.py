"""Conditions on a result, for scripts: `full/hicache < 1.0`, `ttft prefetch/hicache < 2`."""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kvflow.bench.arms import ARMS
from kvflow.bench.result import Document
from kvflow.bench.stats import Claim
from kvflow.errors import UsageError

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_FORM = re.compile(
    r"\s*(?:(?P<metric>run|ttft)\s+)?(?P<arm>\w+)\s*/\s*(?P<other>\w+)\s*"
    r"(?P<sign><=|>=|<|>)\s*(?P<number>\d+(?:\.\d*)?|\.\d+)\s*"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition under which a bench fails.

    Where no difference can be claimed the speed-up counts as 1, so that noise fails nothing; where
    nothing can be said at all the condition holds.

    Attributes:
        text: as it was typed.
        metric: `run` or `ttft`.
        arm: whose speed-up.
        other: over whom.
        sign: how it is compared.
        number: with what.
    """

    text: str
    metric: str
    arm: str
    other: str
    sign: str
    number: float

    def holds(self, document: Document) -> bool:
        """Whether the bench is to fail."""
        value = self._claimed(document)
        return value is None or _COMPARE[self.sign](value, self.number)

    def _claimed(self, document: Document) -> float | None:
        found = document.over(self.arm, self.other, self.metric)
        if found is None or found.claim is Claim.UNKNOWN:
            return None
        return 1.0 if found.claim is Claim.NO_DIFFERENCE else found.mean


def parse(text: str, arms: Sequence[str]) -> Condition:
    """Read a condition.

    Args:
        text: as typed.
        arms: that will be measured.

    Raises:
        UsageError: no condition, or one about an arm that is not measured.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--fail-if {text!r} is no condition",
            "it is [run|ttft] ARM/ARM, one of < <= > >=, and a number",
            "--fail-if 'full/hicache < 1.0'",
        )
    for arm in (match["arm"], match["other"]):
        if arm not in arms:
            known = "it is not among the arms" if arm in ARMS else f"arms are {', '.join(ARMS)}"
            raise UsageError(
                f"--fail-if {text!r}: {arm} is not measured",
                known,
                f"--arms {','.join(dict.fromkeys([*arms, arm]))}" if arm in ARMS else "",
            )
    return Condition(
        text.strip(),
        match["metric"] or "run",
        match["arm"],
        match["other"],
        match["sign"],
        float(match["number"]),
    )
