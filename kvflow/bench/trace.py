"""One more run of an arm, watched closely: when each call did what, and what the link carried.

It is not measured, since being looked at costs a server time.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kvflow.bench.control import Control
from kvflow.client.records import CallRecord
from kvflow.errors import KvflowError

_LOOK_S = 0.02


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


@dataclass(slots=True)
class Trace:
    """One run of an arm.

    Attributes:
        calls: of the run.
        looks: at the server, in order; none of stock SGLang, which does not say.
    """

    calls: Sequence[CallRecord] = ()
    looks: list[Look] = field(default_factory=list)


@contextlib.asynccontextmanager
async def looking(control: Control, looks: list[Look]) -> AsyncIterator[None]:
    """Look at the server, again and again, for as long as the context lasts."""
    watcher = asyncio.create_task(_look(control, looks, time.perf_counter()))
    try:
        yield
    finally:
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher


async def _look(control: Control, looks: list[Look], began: float) -> None:
    # A server that stops answering shows in the calls; the picture only gets shorter.
    with contextlib.suppress(KvflowError):
        while (traffic := await control.traffic()) is not None:
            at_s = time.perf_counter() - began
            looks.append(Look(at_s, traffic.h2d_pending_bytes > 0, traffic.waits))
            await asyncio.sleep(_LOOK_S)
