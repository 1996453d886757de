"""What the HTTP process knows of the scheduler's tree, so that any number of people can follow it.

The scheduler tells one reader what has changed (`snapshot.follow`). This is that reader: it holds
all that was told, each part with the number of the frame that told it, and makes from it the frame
that brings somebody else up to date, whatever that one has seen last.
"""

from collections import deque
from itertools import groupby, takewhile
from operator import attrgetter
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from kvflow.frames import EvictionRecord, Frame, Node, PrefetchRecord

MOST_GONE = 32_768
"""Nodes that left the tree and are remembered; who is further behind gets a key frame."""

_MOST_EVICTIONS = 512
_MOST_PREFETCHES = 256
Record = TypeVar("Record", EvictionRecord, PrefetchRecord)


class _Known(NamedTuple):
    node: Node
    seq: int  # of the frame that told it


class Mirror:
    """All that a scheduler has told since watching began. Bounded by the tree, and by MOST_GONE."""

    def __init__(self) -> None:
        self._latest: Frame | None = None
        self._began = 0
        self._nodes: dict[int, _Known] = {}  # what was told last is last
        self._gone: deque[tuple[int, int]] = deque()  # (seq, node)
        self._evictions: dict[int, EvictionRecord] = {}
        self._prefetches: dict[int, PrefetchRecord] = {}

    @property
    def seq(self) -> int:
        """Of the last frame; what to ask the scheduler with. 0 before the first."""
        return self._latest.seq if self._latest is not None else 0

    @property
    def complete(self) -> bool:
        """Whether the scheduler has told all there was."""
        return self._latest is not None and not self._latest.nodes_left_out

    def apply(self, frame: Frame) -> None:
        """Take what the scheduler tells: a change to what is known, or the beginning of all."""
        goes_on = self._latest is not None and frame.boot == self._latest.boot
        if frame.delta_since is None or frame.delta_since != self.seq or not goes_on:
            self._nodes, self._gone = {}, deque()
            self._evictions, self._prefetches = {}, {}
            self._began = frame.seq
        self._latest = frame
        for node in frame.gone:
            if self._nodes.pop(node, None) is not None:
                self._gone.append((frame.seq, node))
        for told in frame.nodes:
            self._nodes.pop(told.id, None)
            self._nodes[told.id] = _Known(told, frame.seq)
        while len(self._gone) > MOST_GONE:
            self._began = max(self._began, self._gone.popleft()[0])
        _merge(self._evictions, frame.evictions, _MOST_EVICTIONS)
        _merge(self._prefetches, frame.prefetches, _MOST_PREFETCHES)

    def answer(self, since: int, most_nodes: int) -> Frame:
        """The frame for somebody whose last one has this number. `apply` must have been called.

        Args:
            since: a number that is not known, or too old, gives a key frame.
            most_nodes: how many nodes at most; but never fewer than one frame of the scheduler's.
        """
        assert self._latest is not None
        knows = self._began <= since <= self.seq
        nodes, upto = self._news(since if knows else 0, most_nodes)
        return replace(
            self._latest,
            seq=upto,
            delta_since=since if knows else None,
            nodes=nodes,
            nodes_left_out=upto < self.seq or not self.complete,
            gone=self._gone_after(since) if knows else (),
            evictions=tuple(self._evictions[seq] for seq in sorted(self._evictions)),
            prefetches=tuple(self._prefetches[seq] for seq in sorted(self._prefetches)),
        )

    def _news(self, since: int, most: int) -> tuple[tuple[Node, ...], int]:
        """Nodes told after a frame, oldest first, as whole frames, and up to which frame."""
        news: list[Node] = []
        upto = since
        for seq, told in groupby(self._told_after(since), key=attrgetter("seq")):
            nodes = [known.node for known in told]
            if news and len(news) + len(nodes) > most:
                return tuple(news), upto
            news += nodes
            upto = seq
        return tuple(news), self.seq

    def _gone_after(self, since: int) -> tuple[int, ...]:
        latest_first = takewhile(lambda one: one[0] > since, reversed(self._gone))
        return tuple(node for _, node in latest_first)[::-1]

    def _told_after(self, since: int) -> list[_Known]:
        latest_first = reversed(self._nodes.values())
        return [*takewhile(lambda known: known.seq > since, latest_first)][::-1]


def _merge(known: dict[int, Record], news: tuple[Record, ...], most: int) -> None:
    known.update((record.seq, record) for record in news)
    for seq in sorted(known)[: max(0, len(known) - most)]:
        del known[seq]
