"""Following the scheduler for everybody who watches: one question an interval, however many ask."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec

from kvflow.engine.mirror import Mirror
from kvflow.frames import Frame

INTERVAL_S = 0.2
"""What is known of the scheduler is at most this old: less than any reader waits between looks."""

CATCHING_UP_S = 0.02
"""The same while it has not told all there is."""

Ask = Callable[[int], Awaitable[str]]


class Watchers:
    """Brings people up to date, from one mirror of the scheduler's tree.

    Nothing is stored for a watcher: who is slow gets, later, one frame with all that happened.

    Args:
        ask: asks the scheduler what changed since a frame; its frame as JSON.
        clock: seconds.
    """

    def __init__(self, ask: Ask, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._mirror = Mirror()
        self._asked_at = float("-inf")
        self._lock = asyncio.Lock()

    @property
    def rest_s(self) -> float:
        """For how long there is no use in asking again."""
        return INTERVAL_S if self._mirror.complete else CATCHING_UP_S

    async def frame(self, since: int, most_nodes: int) -> Frame:
        """What somebody does not know whose last frame has this number (`Mirror.answer`).

        Raises:
            ControlError: the scheduler does not answer.
        """
        async with self._lock:
            now = self._clock()
            if now - self._asked_at >= self.rest_s:
                told = await self._ask(self._mirror.seq)
                self._mirror.apply(msgspec.json.decode(told, type=Frame))
                self._asked_at = now
        return self._mirror.answer(since, most_nodes)
