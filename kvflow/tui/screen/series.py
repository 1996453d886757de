"""History in as many values as a chart has columns for."""

from collections.abc import Callable, Sequence
from math import ceil

from kvflow.tui.history import Point


def spacing(window_s: int, most: int) -> int:
    """Whole seconds between two values, so that `most` of them cover the window."""
    return max(ceil(window_s / most), 1)


def series(
    points: Sequence[Point],
    pick: Callable[[Point], float | None],
    *,
    window_s: int,
    most: int,
) -> list[float]:
    """Means over equal intervals, oldest first, the last one being that of the latest point.

    Intervals begin at multiples of their length, so that a value keeps its height while it moves
    to the left. One without a point has the value of the next point, which stands for all the time
    since the one before it; unless nothing is there to compare it with, as after a restart. What
    is not known is 0.

    Args:
        points: oldest first.
        pick: the value of a point; None if it is not known.
        window_s: how far to look back.
        most: how many values there is room for.
    """
    if not points or most <= 0:
        return []
    step = spacing(window_s, most)
    last = int(points[-1].time_s // step)
    first = max(last - most + 1, int(points[0].time_s // step))
    sums = [0.0] * (last - first + 1)
    counts = [0] * len(sums)
    since: dict[int, float] = {}  # by interval with a point: the value from the point before it on
    for point in reversed(points):
        at = int(point.time_s // step) - first
        if at < 0:
            break
        value = pick(point)
        since[at] = 0.0 if value is None or point.interval_s is None else value
        if value is not None:
            sums[at] += value
            counts[at] += 1
    values = [0.0] * len(sums)
    following = 0.0
    for at in range(len(sums) - 1, -1, -1):
        mean = sums[at] / counts[at] if counts[at] else 0.0
        values[at] = mean if at in since else following
        following = since.get(at, following)
    return values


def rounded_up(value: float) -> float:
    """The next larger 1, 2 or 5 times a power of ten: a top for an axis that rarely moves."""
    if value <= 0:
        return 0.0
    power = 10.0**-12
    while True:
        for step in (1, 2, 5):
            if value <= step * power * (1 + 1e-9):
                return step * power
        power *= 10
