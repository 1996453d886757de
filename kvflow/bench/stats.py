"""From measurements to claims: ratios within a repeat, their intervals, and when to say nothing.

Arms take turns within a repeat, so that what the machine does meanwhile falls on all of them. What
is compared is therefore the ratio within a repeat; ratios multiply, so means and intervals are
taken of their logarithms.
"""

from collections.abc import Sequence
from enum import StrEnum
from math import exp, floor, log
from statistics import fmean, median, quantiles, stdev, variance
from typing import NamedTuple

from kvflow.bench.student import two_sided_quantile

CONFIDENCE = 0.95
LEAST_CLAIM = 0.02
"""A difference below this is never claimed, however narrow its interval."""


class Claim(StrEnum):
    """What may be said of a ratio."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no difference"
    UNKNOWN = "unknown"  # fewer than two repeats


class Ratio(NamedTuple):
    """How many times as fast one arm is as another.

    Attributes:
        mean: geometric mean; above 1 the first arm is faster.
        low: lower end of the 95 % interval; None of a single repeat.
        high: upper end.
    """

    mean: float
    low: float | None
    high: float | None

    @property
    def claim(self) -> Claim:
        """What may be said: nothing below 2 %, nothing where the interval holds 1."""
        if self.low is None or self.high is None:
            return Claim.UNKNOWN
        if self.low <= 1 <= self.high or abs(self.mean - 1) < LEAST_CLAIM:
            return Claim.NO_DIFFERENCE
        return Claim.FASTER if self.mean > 1 else Claim.SLOWER


def paired(times: Sequence[float], baseline: Sequence[float]) -> Ratio:
    """How many times as fast as the baseline, from times that were taken in the same repeats.

    Args:
        times: positive, one a repeat.
        baseline: as many, in the same order.

    Raises:
        ValueError: no repeats, or not as many on both sides.
    """
    logs = [log(other / own) for own, other in zip(times, baseline, strict=True)]
    if not logs:
        raise ValueError("a ratio of no repeats")
    centre = fmean(logs)
    if len(logs) == 1:
        return Ratio(exp(centre), None, None)
    error = stdev(logs) / len(logs) ** 0.5
    return _interval(centre, error, len(logs) - 1)


def unpaired(times: Sequence[float], baseline: Sequence[float]) -> Ratio:
    """The same of values that were taken apart from each other (Welch's interval of the logs).

    Times alone have to be of the same session: what differs between two is in the ratio, yet not in
    its interval.
    """
    own, other = [[log(value) for value in values] for values in (times, baseline)]
    centre = fmean(other) - fmean(own)
    if min(len(own), len(other)) < 2:
        return Ratio(exp(centre), None, None)
    shares = [variance(logs) / len(logs) for logs in (own, other)]
    total = sum(shares)
    if total == 0:
        return Ratio(exp(centre), exp(centre), exp(centre))
    below = sum(s**2 / (len(logs) - 1) for s, logs in zip(shares, (own, other), strict=True))
    return _interval(centre, total**0.5, max(1, floor(total**2 / below)))


def _interval(centre: float, error: float, freedom: int) -> Ratio:
    half = two_sided_quantile(CONFIDENCE, freedom) * error
    # Even two repeats of a broken clock must give a number that JSON can hold.
    return Ratio(exp(centre), exp(max(-700.0, centre - half)), exp(min(700.0, centre + half)))


def percentile(values: Sequence[float], share: int) -> float:
    """The value below which so many percent lie (linear between neighbours)."""
    if len(values) == 1:
        return values[0]
    return quantiles(values, n=100, method="inclusive")[share - 1]


def spread(name: str, values: Sequence[float]) -> dict[str, float]:
    """Mean, median, deviation and percentiles under the key names of `vllm bench serve`.

    Args:
        name: of the metric, such as ttft.
        values: in seconds, at least one; the results are in milliseconds.
    """
    in_ms = [value * 1000 for value in values]
    return {
        f"mean_{name}_ms": fmean(in_ms),
        f"median_{name}_ms": median(in_ms),
        f"std_{name}_ms": stdev(in_ms) if len(in_ms) > 1 else 0.0,
        f"p95_{name}_ms": percentile(in_ms, 95),
        f"p99_{name}_ms": percentile(in_ms, 99),
    }
