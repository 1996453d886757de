"""For how long KV had not been used when a call found it, or when it had to go.

For people to look at: this is the engine's only wall clock besides the frame's own time, and
nothing decides from it.
"""

import time
from bisect import bisect_left
from collections.abc import Callable

BOUNDS_S = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0)
"""Upper bounds of the histograms' buckets, in seconds; a last bucket has none."""


class Ages:
    """When each node was last used, and two histograms over that.

    A node is used by the call that makes it, by each call that is admitted with it, and when such
    a call ends. Memory: one number a node.

    Args:
        clock: seconds, never falling.

    Attributes:
        hit_tokens: by bucket, tokens that admitted calls found; never falls.
        evicted_tokens: by bucket, tokens that left a tier; never falls.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._used: dict[int, float] = {}
        self.hit_tokens = [0] * (len(BOUNDS_S) + 1)
        self.evicted_tokens = [0] * (len(BOUNDS_S) + 1)

    def __len__(self) -> int:
        return len(self._used)

    def used(self, node: int) -> None:
        """A node is used now."""
        self._used[node] = self._clock()

    def split(self, new_parent: int, child: int) -> None:
        """A node was cut in two."""
        if child in self._used:
            self._used[new_parent] = self._used[child]

    def removed(self, node: int) -> None:
        """A node left the tree."""
        self._used.pop(node, None)

    def forget_nodes(self) -> None:
        """The tree was emptied."""
        self._used.clear()

    def of(self, node: int) -> float | None:
        """Seconds since a node was used; None if no call of this server has used it."""
        used = self._used.get(node)
        return None if used is None else self._clock() - used

    def hit(self, node: int, tokens: int) -> None:
        """An admitted call has found so many tokens of a node, and uses it now."""
        _count(self.hit_tokens, self.of(node), tokens)
        self.used(node)

    def evicted(self, age_s: float | None, tokens: int) -> None:
        """So many tokens of this age left a tier."""
        _count(self.evicted_tokens, age_s, tokens)


def _count(histogram: list[int], age_s: float | None, tokens: int) -> None:
    if age_s is not None:
        histogram[bisect_left(BOUNDS_S, age_s)] += tokens
