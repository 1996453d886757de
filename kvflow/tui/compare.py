"""Two recordings, figure by figure: what each did in the same time, and what differs, in words.

Pure. Two recordings are two samples and no proof: `kvflow bench` measures with intervals.
"""

from collections.abc import Callable
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from kvflow import __version__
from kvflow.frames import Counters, Frame, Traffic
from kvflow.tui.recording import Recording

SCHEMA_VERSION: Final = 1

_SAME_SHARE = 0.005  # what is less apart is called the same
_SAME_FACTOR = 1.005
_MUCH = 2.0  # from here on it is told as a factor


class Side(NamedTuple):
    """One of the two recordings at one moment.

    Attributes:
        name: of its file, as it was given.
        label: of the source that was recorded.
        first: its first frame.
        now: the frame of the moment.
        ended_s: its length, where the moment that was asked for lies behind its end.
    """

    name: str
    label: str
    first: Frame
    now: Frame
    ended_s: float | None = None

    @property
    def restarted(self) -> bool:
        """Whether the server started anew since the recording began: figures are of since then."""
        return self.first.boot != self.now.boot


class Unit(StrEnum):
    """What a figure counts."""

    SHARE = "share"  # 0 to 1
    TOKENS = "tokens"
    BYTES = "bytes"
    CALLS = "calls"


class Figure(NamedTuple):
    """One thing that is compared.

    Attributes:
        name: in JSON.
        title: in words.
        unit: of its values.
        wanted: 1 if more of it is better, -1 if less is, 0 if neither is.
    """

    name: str
    title: str
    unit: Unit
    wanted: int = 0


class Difference(NamedTuple):
    """A figure of both.

    Attributes:
        figure: which.
        a: of the first recording; None where there is nothing to divide by, or no host tier.
        b: of the second one.
    """

    figure: Figure
    a: float | None
    b: float | None

    @property
    def verdict(self) -> int:
        """1 if B is better, -1 if it is worse, 0 if neither can be said."""
        if self.a is None or self.b is None or self.is_same:
            return 0
        return self.figure.wanted if self.b > self.a else -self.figure.wanted

    @property
    def is_same(self) -> bool:
        """Whether the two are as good as equal."""
        if self.a is None or self.b is None:
            return self.a is self.b
        if self.figure.unit is Unit.SHARE:
            return abs(self.a - self.b) < _SAME_SHARE
        low, high = sorted((self.a, self.b))
        return high <= low * _SAME_FACTOR

    def words(self) -> str:
        """How B stands to A."""
        if self.a is None or self.b is None:
            return "" if self.a is self.b else f"only {'B' if self.a is None else 'A'} has any"
        if self.is_same:
            return "the same"
        more = "more" if self.b > self.a else "less"
        if self.figure.unit is Unit.SHARE:
            points = f"{abs(self.b - self.a) * 100:.0f} points"
            return f"{'1 point' if points == '1 points' else points} {more}{self._judged()}"
        if not self.a or not self.b:
            return f"only {'A' if self.a else 'B'} has any{self._judged()}"
        factor = self.b / self.a
        if not 1 / _MUCH < factor < _MUCH:
            return f"{Decimal(f'{factor:.2g}'):,f} times A's{self._judged()}"
        return f"{abs(factor - 1) * 100:.0f}% {more}{self._judged()}"

    def _judged(self) -> str:
        return {1: ", better", -1: ", worse", 0: ""}[self.verdict]


class _Totals(NamedTuple):
    """What has happened since a recording began."""

    counters: Counters
    base: Counters | None
    traffic: Traffic | None
    traffic_base: Traffic | None

    def count(self, name: str) -> int:
        """How much a counter has grown."""
        before = getattr(self.base, name) if self.base else 0
        return int(getattr(self.counters, name) - before)

    def found(self, name: str) -> float | None:
        """A share of the prompt tokens that were admitted."""
        places = ("hit_device_tokens", "hit_host_tokens", "computed_tokens")
        return _share(self.count(name), sum(self.count(place) for place in places))

    def regretted(self) -> float | None:
        """Of the tokens that left the device or the host, the share that was asked for again.

        More than 1 where much of that left before the recording began.
        """
        evicted = self.count("evicted_device_tokens") + self.count("evicted_host_tokens")
        return _share(self.count("regretted_tokens"), evicted)

    def of_prefetched(self, name: str) -> float | None:
        """A share of the tokens that were prefetched.

        At most 1: what a recording sees used may have been prefetched before it began.
        """
        share = _share(self.count(name), self.count("prefetched_tokens"))
        return None if share is None else min(share, 1.0)

    def copied(self) -> int | None:
        """Bytes that went from the host to the device."""
        if self.traffic is None:
            return None
        before = self.traffic_base.h2d_bytes if self.traffic_base else 0
        return self.traffic.h2d_bytes - before


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 else None


_FIGURES: Final[tuple[tuple[Figure, Callable[[_Totals], float | None]], ...]] = (
    (
        Figure("calls", "calls", Unit.CALLS),
        lambda t: t.count("tagged_calls") + t.count("untagged_calls"),
    ),
    (
        Figure("device_hits", "prompts found on the device", Unit.SHARE, 1),
        lambda t: t.found("hit_device_tokens"),
    ),
    (
        Figure("host_hits", "prompts found on the host", Unit.SHARE),
        lambda t: t.found("hit_host_tokens"),
    ),
    (
        Figure("computed", "prompts computed", Unit.SHARE, -1),
        lambda t: t.found("computed_tokens"),
    ),
    (
        Figure("evicted", "evicted from the device", Unit.TOKENS),
        lambda t: t.count("evicted_device_tokens"),
    ),
    (
        Figure("regretted", "of all evicted, wanted again", Unit.SHARE, -1),
        _Totals.regretted,
    ),
    (Figure("prefetched", "prefetched", Unit.TOKENS), lambda t: t.count("prefetched_tokens")),
    (
        Figure("used", "  of it used", Unit.SHARE, 1),
        lambda t: t.of_prefetched("prefetched_used_tokens"),
    ),
    (
        Figure("late", "  of it used, but late", Unit.SHARE, -1),
        lambda t: t.of_prefetched("prefetched_late_tokens"),
    ),
    (
        Figure("wasted", "  of it wasted", Unit.SHARE, -1),
        lambda t: t.of_prefetched("prefetched_wasted_tokens"),
    ),
    (Figure("h2d", "copied from host to device", Unit.BYTES), _Totals.copied),
)


def differences(a: Side, b: Side) -> list[Difference]:
    """Every figure of both, counted from the beginning of each recording."""
    of_a, of_b = _totals(a), _totals(b)
    return [Difference(figure, value(of_a), value(of_b)) for figure, value in _FIGURES]


def _totals(side: Side) -> _Totals:
    if side.restarted:
        return _Totals(side.now.counters, None, side.now.traffic, None)
    return _Totals(side.now.counters, side.first.counters, side.now.traffic, side.first.traffic)


def side_at(path: Path, recording: Recording, position_s: float) -> Side:
    """A recording, so many seconds after its first frame."""
    return Side(
        str(path), recording.label, recording.frame(0), recording.frame(recording.at(position_s))
    )


def document(a: Side, b: Side, seconds: float) -> dict[str, Any]:
    """The comparison as one JSON document. Additive only.

    Args:
        a: the first recording.
        b: the second one, at the same time since its beginning.
        seconds: that time.
    """
    told = differences(a, b)
    return {
        "schema_version": SCHEMA_VERSION,
        "kvflow": __version__,
        "seconds": seconds,
        "a": _side(a, {one.figure.name: one.a for one in told}),
        "b": _side(b, {one.figure.name: one.b for one in told}),
        "differences": [
            {
                "figure": one.figure.name,
                "unit": one.figure.unit,
                "a": one.a,
                "b": one.b,
                "verdict": {1: "better", -1: "worse", 0: None}[one.verdict],
                "words": one.words(),
            }
            for one in told
        ],
    }


def _side(side: Side, values: dict[str, float | None]) -> dict[str, Any]:
    return {
        "recording": side.name,
        "source": side.label,
        "mode": side.now.mode,
        "restarted": side.restarted,
        "figures": values,
    }
