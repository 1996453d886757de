"""In which order arms take turns, and how long the rest will take."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple, TypeVar

from kvflow.bench.arms import Arm

Item = TypeVar("Item")


class Block(NamedTuple):
    """One arm's turn within a repeat of a setting.

    Attributes:
        setting: name of the setting.
        repeat: from 0.
        arm: whose turn it is.
        first: whether it is the arm's first turn in this setting.
        last: whether it is its last one.
    """

    setting: str
    repeat: int
    arm: Arm
    first: bool
    last: bool


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured.

    Attributes:
        repeats: how often every arm takes its turn in each setting.
        budget_s: no repeat is begun that would probably end later than so many seconds after the
            start of its setting, once there are `least_repeats`; None for no such limit.
        least_repeats: see `budget_s`.
    """

    repeats: int
    budget_s: float | None = None
    least_repeats: int = 3

    def is_last(self, repeat: int, elapsed_s: float, latest_s: float) -> bool:
        """Whether a repeat that begins now is the last one.

        Args:
            repeat: from 0.
            elapsed_s: since the setting began.
            latest_s: that the repeat before took.
        """
        if repeat == self.repeats - 1:
            return True
        if self.budget_s is None or repeat + 1 < self.least_repeats:
            return False
        return elapsed_s + 2 * latest_s > self.budget_s


def turns(
    setting: str,
    arms: Sequence[Arm],
    repeat: int,
    last: bool,
    server_of: Callable[[Arm], str],
) -> list[Block]:
    """The turns of one repeat. Who begins changes from repeat to repeat.

    Args:
        setting: name of the setting.
        arms: to be measured.
        repeat: from 0.
        last: whether no other follows.
        server_of: gives an arm's server; arms that share one are next to each other.
    """
    servers: dict[str, list[Arm]] = {}
    for arm in arms:
        servers.setdefault(server_of(arm), []).append(arm)
    return [
        Block(setting, repeat, arm, repeat == 0, last)
        for sharing in _rotated(list(servers.values()), repeat)
        for arm in _rotated(sharing, repeat // len(servers))
    ]


def _rotated(items: Sequence[Item], by: int) -> list[Item]:
    at = by % len(items) if items else 0
    return [*items[at:], *items[:at]]


@dataclass(slots=True)
class Pace:
    """How long turns take, to say how long the rest will.

    Attributes:
        total: turns in all.
    """

    total: int
    _seconds: dict[str, list[float]] = field(default_factory=dict)
    _done: int = 0

    def note(self, arm: str, seconds: float) -> None:
        """A turn of an arm is over."""
        self._seconds.setdefault(arm, []).append(seconds)
        self._done += 1

    def skip(self, turns: int) -> None:
        """Some turns will not take place."""
        self.total -= turns

    @property
    def done(self) -> int:
        """How many turns are over."""
        return self._done

    def left_s(self) -> float | None:
        """Seconds that the rest will take; None before the first turn is over.

        Every arm has about as many turns as any other, so the mean is over arms, each by its
        latest turns: the first ones are longer, since the cache has to be filled. Starts of
        servers are in it where turns begin with one.
        """
        if not self._seconds:
            return None
        latest = fmean(fmean(seconds[-3:]) for seconds in self._seconds.values())
        return latest * (self.total - self._done)
