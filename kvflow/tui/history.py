"""What frames tell only by their differences: rates and shares over time, for charts.

Pure and bounded: 15 minutes at a point a second.
"""

from collections import deque
from typing import NamedTuple

from kvflow.frames import Ages, Counters, Frame, Pool, Traffic

POINTS = 900
LEAST_SPACING_S = 0.9  # of points; faster frames add to the same one
_GIGA = 1e9


class Point(NamedTuple):
    """A server over the interval that ends at `time_s`.

    Rates are None where there is no host tier or nothing to compare with. The three hit shares
    add up to 1, and are None where no prompt was admitted in the interval, or nothing is there to
    compare with; those of a server that has just started anew count from its start.
    """

    time_s: float  # Unix time, as the server tells it
    h2d_gbps: float | None  # GB/s, 10^9 bytes
    d2h_gbps: float | None
    device_hits: float | None  # share of admitted prompt tokens that were found on the device
    host_hits: float | None
    computed: float | None
    device_locked: float  # shares of the device pool
    device_evictable: float
    host_locked: float | None  # shares of the host pool
    host_evictable: float | None
    running: int
    waiting: int
    evicted_tokens_s: float | None  # that left the device, per second
    prefetched_tokens_s: float | None
    device_used: float  # share of the device pool that is not free: in the tree, or of calls
    host_used: float | None
    h2d_busy: float | None = None  # of the interval, that copies took which ended in it
    d2h_busy: float | None = None
    interval_s: float | None = None  # its length; None where nothing is there to compare with


class AgeCurves(NamedTuple):
    """How old KV was when it was asked for, and when it was evicted.

    One share a bucket; buckets end at `bounds_s`, the last one has no end. None: no such event.
    """

    bounds_s: tuple[float, ...]
    hit: tuple[float, ...] | None
    evicted: tuple[float, ...] | None


class _Base(NamedTuple):
    time_s: float
    counters: Counters
    traffic: Traffic | None


class History:
    """Points of the last 15 minutes, the oldest first."""

    def __init__(self) -> None:
        self.points: deque[Point] = deque(maxlen=POINTS)
        self._ages: deque[tuple[float, Ages]] = deque(maxlen=POINTS)
        self._base: _Base | None = None
        self._restarted = False  # since the last point

    def add(self, frame: Frame) -> None:
        """Take in a frame. One from before the last point (a replay went back) ends what follows.

        Args:
            frame: the next frame of the same server, with its time.
        """
        if self.points and frame.time_s < self.points[-1].time_s:
            self._forget_from(frame.time_s)
        base = self._base
        if base is not None and 0 <= frame.time_s - base.time_s < LEAST_SPACING_S:
            return
        self.points.append(_point(base, frame, self._restarted))
        if frame.ages is not None:
            self._ages.append((frame.time_s, frame.ages))
        self._base = _Base(frame.time_s, frame.counters, frame.traffic)
        self._restarted = False

    def _forget_from(self, time_s: float) -> None:
        while self.points and self.points[-1].time_s >= time_s:
            self.points.pop()
        while self._ages and self._ages[-1][0] >= time_s:
            self._ages.pop()
        self._base, self._restarted = None, False

    def set_back(self, seconds: float) -> None:
        """The server's clock was set back: what it told by the clock before was so much earlier."""
        moved = [point._replace(time_s=point.time_s - seconds) for point in self.points]
        self.points.clear()
        self.points.extend(moved)
        ages = [(time_s - seconds, ages) for time_s, ages in self._ages]
        self._ages.clear()
        self._ages.extend(ages)
        if self._base is not None:
            self._base = self._base._replace(time_s=self._base.time_s - seconds)

    def restart(self) -> None:
        """The server started anew: its counters begin at 0, and the past stays as it was."""
        self._base, self._restarted = None, True
        self._ages.clear()

    def ages(self, window_s: float | None = None) -> AgeCurves | None:
        """Ages at hit and at eviction of the last seconds; of all time without a window.

        Returns:
            None if the server does not tell.
        """
        if not self._ages:
            return None
        now, latest = self._ages[-1]
        oldest = None
        if window_s is not None:
            oldest = next((ages for time_s, ages in self._ages if time_s >= now - window_s), None)
        if oldest is None or oldest.bounds_s != latest.bounds_s:
            return AgeCurves(
                latest.bounds_s, _shares(latest.hit_tokens), _shares(latest.evicted_tokens)
            )
        return AgeCurves(
            latest.bounds_s,
            _shares(_minus(latest.hit_tokens, oldest.hit_tokens)),
            _shares(_minus(latest.evicted_tokens, oldest.evicted_tokens)),
        )


def _point(base: _Base | None, frame: Frame, restarted: bool) -> Point:
    device, host = frame.device, frame.host
    hits = None
    if base is not None or restarted:
        hits = _hit_shares(base.counters if base else None, frame.counters)
    rates = _rates(base, frame) if base else _NO_RATES
    return Point(
        time_s=frame.time_s,
        h2d_gbps=rates.h2d_gbps,
        d2h_gbps=rates.d2h_gbps,
        device_hits=hits[0] if hits else None,
        host_hits=hits[1] if hits else None,
        computed=hits[2] if hits else None,
        device_locked=share(device.locked, device),
        device_evictable=share(device.evictable, device),
        host_locked=share(host.locked, host) if host else None,
        host_evictable=share(host.evictable, host) if host else None,
        running=frame.running,
        waiting=frame.waiting,
        evicted_tokens_s=rates.evicted_tokens_s,
        prefetched_tokens_s=rates.prefetched_tokens_s,
        h2d_busy=rates.h2d_busy,
        d2h_busy=rates.d2h_busy,
        device_used=share(device.capacity - device.free, device),
        host_used=share(host.capacity - host.free, host) if host else None,
        interval_s=frame.time_s - base.time_s if base else None,
    )


class _Rates(NamedTuple):
    h2d_gbps: float | None
    d2h_gbps: float | None
    evicted_tokens_s: float | None
    prefetched_tokens_s: float | None
    h2d_busy: float | None
    d2h_busy: float | None


_NO_RATES = _Rates(None, None, None, None, None, None)


def _rates(base: _Base, frame: Frame) -> _Rates:
    seconds = frame.time_s - base.time_s
    was, now = base.counters, frame.counters
    h2d = d2h = h2d_busy = d2h_busy = None
    if base.traffic and frame.traffic:
        h2d = _rate(base.traffic.h2d_bytes, frame.traffic.h2d_bytes, seconds * _GIGA)
        d2h = _rate(base.traffic.d2h_bytes, frame.traffic.d2h_bytes, seconds * _GIGA)
        h2d_busy = _rate(base.traffic.h2d_busy_s, frame.traffic.h2d_busy_s, seconds)
        d2h_busy = _rate(base.traffic.d2h_busy_s, frame.traffic.d2h_busy_s, seconds)
    return _Rates(
        h2d,
        d2h,
        _rate(was.evicted_device_tokens, now.evicted_device_tokens, seconds),
        _rate(was.prefetched_tokens, now.prefetched_tokens, seconds),
        h2d_busy,
        d2h_busy,
    )


def share(tokens: int, pool: Pool) -> float:
    """Tokens as a share of a pool, 0 to 1."""
    return min(1.0, tokens / pool.capacity) if pool.capacity else 0.0


def hit_shares(counters: Counters) -> tuple[float, float, float] | None:
    """Shares of all admitted prompt tokens: found on the device, on the host, computed."""
    return _hit_shares(None, counters)


def _hit_shares(before: Counters | None, after: Counters) -> tuple[float, float, float] | None:
    now = (after.hit_device_tokens, after.hit_host_tokens, after.computed_tokens)
    if before is not None:
        was = (before.hit_device_tokens, before.hit_host_tokens, before.computed_tokens)
        now = (now[0] - was[0], now[1] - was[1], now[2] - was[2])
    total = sum(now)
    if total <= 0 or min(now) < 0:  # below 0: the server started anew and does not say so
        return None
    return now[0] / total, now[1] / total, now[2] / total


def _rate(before: float, after: float, per: float) -> float | None:
    return (after - before) / per if after >= before and per > 0 else None


def _minus(after: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(0, a - b) for a, b in zip(after, before, strict=True))


def _shares(tokens: tuple[int, ...]) -> tuple[float, ...] | None:
    total = sum(tokens)
    return tuple(one / total for one in tokens) if total else None
