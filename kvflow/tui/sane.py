"""Whether what a frame tells can be true: figures that no server has would break what draws them.

Pure. The types are right by then; this is about what a type cannot say.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import msgspec

from kvflow.frames import (
    AgentState,
    Ages,
    Counters,
    EvictionRecord,
    Frame,
    Node,
    Pool,
    PrefetchRecord,
    Traffic,
    WaitingCall,
)

_MOST: Final = 2**53  # up to here floats count one by one
_LATEST_S: Final = 253_402_300_799  # the end of the year 9999, which is as far as calendars go


def nonsense(frame: Frame) -> str:
    """What cannot be true, in words; empty if all can. Half a millisecond for 500 nodes."""
    if not is_time(frame.time_s):
        return f"its time is {frame.time_s:g} s"
    if not all(0 <= number <= _MOST for number in _extremes(_integers(frame))):
        return f"a number in it is below 0 or above {_MOST}"
    if not all(abs(number) <= _MOST for number in _floats(frame)):  # also false if it is none
        return f"a duration in it is beyond {_MOST} s"
    if frame.ages is not None and not _fits(frame.ages):
        return "its ages do not fit their bounds"
    return ""


def is_time(unix_s: float) -> bool:
    """Whether a Unix time is one that a calendar has."""
    return 0 <= unix_s <= _LATEST_S


def _extremes(numbers: Iterator[int]) -> tuple[int, int]:
    known = list(numbers)
    return min(known), max(known)


def _integers(frame: Frame) -> Iterator[int]:
    told = (
        map(_OF_FRAME, (frame,)),
        map(_OF_NODE, frame.nodes),
        map(_OF_POOL, filter(None, (frame.device, frame.host))),
        map(_OF_AGENT, frame.agents),
        map(_OF_EVICTION, frame.evictions),
        map(_OF_PREFETCH, frame.prefetches),
        map(_OF_CALL, frame.waiting_calls),
        map(_OF_TRAFFIC, filter(None, (frame.traffic,))),
        map(_OF_COUNTERS, (frame.counters,)),
    )
    yield from chain.from_iterable(chain.from_iterable(told))
    for agent in frame.agents:
        yield from (n for n in (agent.steps, agent.end) if n is not None)
    for run in frame.run_states:
        yield from (run.idle_ticks, *run.in_flight.values(), *run.steps.values())
    yield from frame.counters.bad_hints.values()
    yield from frame.gone
    if frame.ages is not None:
        yield from (*frame.ages.hit_tokens, *frame.ages.evicted_tokens)


def _floats(frame: Frame) -> Iterator[float]:
    yield frame.uptime_s
    yield from map(attrgetter("last_access"), frame.nodes)
    yield from (one.age_s for one in frame.evictions if one.age_s is not None)
    if frame.traffic is not None:
        yield from (frame.traffic.h2d_busy_s, frame.traffic.d2h_busy_s)
    if frame.ages is not None:
        yield from frame.ages.bounds_s


def _fits(ages: Ages) -> bool:
    buckets = len(ages.bounds_s) + 1
    return len(ages.hit_tokens) == len(ages.evicted_tokens) == buckets


def _integers_of(kind: type[msgspec.Struct]) -> Callable[[Any], tuple[int, ...]]:
    """What picks all integers of a struct."""
    return attrgetter(*(one.name for one in msgspec.structs.fields(kind) if one.type is int))


_OF_FRAME = _integers_of(Frame)
_OF_NODE = _integers_of(Node)
_OF_POOL = _integers_of(Pool)
_OF_AGENT = _integers_of(AgentState)
_OF_EVICTION = _integers_of(EvictionRecord)
_OF_PREFETCH = _integers_of(PrefetchRecord)
_OF_CALL = _integers_of(WaitingCall)
_OF_TRAFFIC = _integers_of(Traffic)
_OF_COUNTERS = _integers_of(Counters)
