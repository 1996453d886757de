"""Student's t distribution for whole degrees of freedom, which have closed forms."""

from functools import cache
from math import atan2, cos, pi, sin, sqrt

_FAR = 1e9  # beyond every quantile that an interval asks for


@cache
def two_sided_quantile(confidence: float, freedom: int) -> float:
    """The t for which so much of the distribution lies between -t and t.

    Args:
        confidence: a share between 0 and 1, such as 0.95.
        freedom: degrees of freedom, at least 1.

    Raises:
        ValueError: no such distribution or share.
    """
    if not 0 < confidence < 1 or freedom < 1:
        raise ValueError(f"no t interval of {confidence} with {freedom} degrees of freedom")
    low, high = 0.0, 1.0
    while central_share(high, freedom) < confidence and high < _FAR:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        if central_share(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def central_share(t: float, freedom: int) -> float:
    """How much of the distribution lies between -t and t (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    angle = atan2(t, sqrt(freedom))
    odd = freedom % 2
    # A finite series in cos(angle): every term follows from the one before it.
    term = cos(angle) if odd else 1.0
    total = 0.0
    for power in range(1 if odd else 0, freedom - 1, 2):
        total += term
        term *= cos(angle) ** 2 * (power + 1) / (power + 2)
    return (angle + sin(angle) * total) * 2 / pi if odd else sin(angle) * total
