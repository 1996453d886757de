"""Asking the scheduler for everybody who looks: one question an interval, however many look."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec
from msgspec.structs import replace

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


class Looks:
    """Frames by themselves, few however many people want one.

    Each is of a moment after it was asked for, so that counters show all that had happened then.
    Who asks too soon waits, and whoever has asked by then gets the same frame.

    Args:
        ask: asks the scheduler for a frame with so many nodes; its frame as JSON.
        spacing_s: seconds between two questions.
    """

    def __init__(self, ask: Ask, spacing_s: float) -> None:
        self._ask, self._spacing_s = ask, spacing_s
        self._asked_at = float("-inf")
        self._most_nodes = 0  # of those who wait
        self._next: asyncio.Task[Frame] | None = None

    async def frame(self, most_nodes: int) -> Frame:
        """A frame with at most so many nodes, the ones nearest the root.

        Raises:
            ControlError: the scheduler does not answer.
        """
        self._most_nodes = max(self._most_nodes, most_nodes)
        if self._next is None or self._next.done():
            self._next = asyncio.create_task(self._look())
        # Shielded: others may wait for the same frame.
        frame = await asyncio.shield(self._next)
        left_out = frame.nodes_left_out or len(frame.nodes) > most_nodes
        return replace(frame, nodes=frame.nodes[:most_nodes], nodes_left_out=left_out)

    async def _look(self) -> Frame:
        await asyncio.sleep(self._asked_at + self._spacing_s - time.monotonic())
        most_nodes, self._most_nodes, self._next = self._most_nodes, 0, None
        self._asked_at = time.monotonic()
        return msgspec.json.decode(await self._ask(most_nodes), type=Frame)
