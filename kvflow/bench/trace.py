"""One more run of an arm, watched closely: when each call did what, and what the link carried.

It is not measured, since being looked at costs a server time.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kvflow.bench.control import Control
from kvflow.client.records import CallRecord
from kvflow.errors import KvflowError

_LOOK_S = 0.02
_APART_S = 0.005  # layers are copied one after another, with less between them


class Look(NamedTuple):
    """What a server told at one moment.

    Attributes:
        at_s: seconds since the run began.
        loads: whether something was on its way to the device.
        waits: forwards that had to wait for a load since the server started.
    """

    at_s: float
    loads: bool
    waits: int


class Copy(NamedTuple):
    """A time in which something was on its way to the device, in seconds since the run began."""

    start_s: float
    end_s: float


@dataclass(slots=True)
class Trace:
    """One run of an arm.

    Attributes:
        calls: of the run.
        looks: at the server, in order; none of stock SGLang, which does not say.
        copies: to the device, in order; None where nobody tells (stock SGLang on a GPU).
    """

    calls: Sequence[CallRecord] = ()
    looks: list[Look] = field(default_factory=list)
    copies: list[Copy] | None = None


@contextlib.asynccontextmanager
async def watching_a_run(
    control: Control, link_log: Path | None, began: float
) -> AsyncIterator[Trace]:
    """Look at the server, again and again, for as long as the context lasts.

    Args:
        control: of the server.
        link_log: where its emulated link notes copies; None of a real one.
        began: what `time.perf_counter` showed when the run began.
    """
    trace = Trace()
    watcher = asyncio.create_task(_look(control, trace.looks, began))
    try:
        yield trace
    finally:
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher
    trace.copies = _seen(trace.looks) if link_log is None else _noted(link_log, began)


async def _look(control: Control, looks: list[Look], began: float) -> None:
    # A server that stops answering shows in the calls; the picture only gets shorter.
    with contextlib.suppress(KvflowError):
        while (traffic := await control.traffic()) is not None:
            at_s = time.perf_counter() - began
            looks.append(Look(at_s, traffic.h2d_pending_bytes > 0, traffic.waits))
            await asyncio.sleep(_LOOK_S)


def _seen(looks: Sequence[Look]) -> list[Copy] | None:
    """From the look that saw something to the next one."""
    if not looks:
        return None
    return [Copy(one.at_s, other.at_s) for one, other in pairwise(looks) if one.loads]


def _noted(link_log: Path, began: float) -> list[Copy]:
    """What the emulated link has noted since the run began, in the seconds of the same clock."""
    found: list[Copy] = []
    lines = link_log.read_text().splitlines() if link_log.exists() else []
    for line in lines:
        start, end = (float(time_s) - began for time_s in line.split())
        if start < 0:
            continue
        if found and start - found[-1].end_s < _APART_S:
            found[-1] = Copy(found[-1].start_s, end)
        else:
            found.append(Copy(start, end))
    return found
