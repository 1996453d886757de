"""What becomes of KV that was loaded ahead: found, found on its way, or evicted unseen."""

from collections import deque
from dataclasses import dataclass
from itertools import islice

from kvflow.frames import PrefetchRecord, PrefetchStatus
from kvflow.policy.prefetch import Candidate

_KEPT_RECORDS = 256


@dataclass(slots=True)
class _Prefetch:
    """One prefix that is brought back ahead of need; `unseen` of its tokens no call has found."""

    seq: int
    node: int
    agent: str
    steps: int
    tokens: int
    unseen: int
    status: PrefetchStatus = PrefetchStatus.LOADING


class Outcomes:
    """What became of prefetched KV, in tokens; none of the counters ever falls.

    Attributes:
        operations: prefetches that were started.
        issued: tokens loaded ahead.
        used: of these, found by a call.
        late: of these, still on their way when the call was there.
        wasted: evicted before any call found them.
    """

    def __init__(self) -> None:
        self.issued = self.used = self.late = self.wasted = 0
        self.operations = 0
        self._fresh: dict[int, _Prefetch] = {}  # by node that no call has found yet
        self._loading: dict[int, _Prefetch] = {}  # by the node that ends the prefix
        self._latest: deque[_Prefetch] = deque(maxlen=_KEPT_RECORDS)
        self._news: dict[int, _Prefetch] = {}  # by number, what readers have not seen so

    def started(self, nodes: list[int], prefix: Candidate) -> None:
        """A prefetch is on its way.

        Args:
            nodes: that it loads.
            prefix: what it brings back.
        """
        self.operations += 1
        self.issued += prefix.tokens
        agent = "/".join(prefix.owner)
        tokens = prefix.tokens
        one = _Prefetch(self.operations, prefix.node, agent, prefix.steps, tokens, unseen=tokens)
        self._latest.append(one)
        self._is_news(one)
        self._loading[prefix.node] = one
        self._fresh.update(dict.fromkeys(nodes, one))

    def is_ahead(self, end: int) -> bool:
        """Whether the load whose prefix ends at this node was started ahead of need."""
        return end in self._loading

    def arrived(self, end: int) -> None:
        """The load whose prefix ends at this node is complete."""
        one = self._loading.pop(end, None)
        if one is not None and one.status is PrefetchStatus.LOADING:
            one.status = PrefetchStatus.ARRIVED
            self._is_news(one)

    def split(self, new_parent: int, child: int) -> None:
        """A node was cut in two."""
        if child in self._fresh:
            self._fresh[new_parent] = self._fresh[child]

    def found(self, node: int, tokens: int, *, loading: bool) -> None:
        """A call has found this node."""
        one = self._fresh.pop(node, None)
        if one is None:
            return
        one.unseen -= tokens
        self.used += tokens
        self.late += tokens if loading else 0
        if loading:
            one.status = PrefetchStatus.LATE
        elif one.status is not PrefetchStatus.LATE:
            one.status = PrefetchStatus.USED
        self._is_news(one)

    def lost(self, node: int, tokens: int) -> None:
        """The node has left the device."""
        one = self._fresh.pop(node, None)
        if one is None:
            return
        one.unseen -= tokens
        self.wasted += tokens
        if one.status is PrefetchStatus.ARRIVED:
            one.status = PrefetchStatus.WASTED
            self._is_news(one)

    def latest(self) -> tuple[PrefetchRecord, ...]:
        """The last prefetches, oldest first, at most 256. One that was used in part is used."""
        return tuple(map(_record, self._latest))

    @property
    def has_news(self) -> bool:
        """Whether there are prefetches that `take_news` has not given as they are now."""
        return bool(self._news)

    def all_is_news(self) -> None:
        """A reader begins, who has seen nothing."""
        self._news = {one.seq: one for one in self._latest}

    def take_news(self, most: int) -> tuple[PrefetchRecord, ...]:
        """At most so many of the latest prefetches, none that was given as it is now."""
        return tuple(_record(self._news.pop(seq)) for seq in list(islice(self._news, most)))

    def forget_nodes(self) -> None:
        """The tree was emptied: what no call had found by then was loaded for nothing."""
        for one in {one.seq: one for one in self._fresh.values()}.values():
            self.wasted += one.unseen
            if one.status in (PrefetchStatus.LOADING, PrefetchStatus.ARRIVED):
                one.status = PrefetchStatus.WASTED
                self._is_news(one)
        self._fresh.clear()
        self._loading.clear()

    def _is_news(self, one: _Prefetch) -> None:
        if one.seq > self.operations - _KEPT_RECORDS:
            self._news[one.seq] = one
        self._news.pop(self.operations - _KEPT_RECORDS, None)


def _record(one: _Prefetch) -> PrefetchRecord:
    return PrefetchRecord(
        seq=one.seq,
        node=one.node,
        agent=one.agent,
        steps=one.steps,
        tokens=one.tokens,
        status=one.status,
    )
