"""Prefetch: bringing back, between two scheduler passes, what the agents that come next will need.

It runs on the scheduler's thread once a pass, after SGLang has taken note of the copies that are
complete in every rank, and decides from what all ranks know alike. Copies go through SGLang's own
`load_back`, on its own stream, behind its own fence against forwards that still write.

Two rules keep it out of the way (both were found by breaking them):
- a forward never reads a node on its way without waiting for it: `Fence`;
- SGLang's ring of layer counters has three slots, of which a batch that runs and the next one may
  hold two. A prefetch starts only when no load is in flight, so it never takes a fourth.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kvflow.engine.marks import Owner
from kvflow.policy.prefetch import Candidate, Victim, has_room, in_order

if TYPE_CHECKING:
    from kvflow.engine.cache import KvflowRadixCache

_STEPS_OF_DECODE = 64  # tokens a running request may want while a prefetch is on its way
_SHARE_IN_FLIGHT = 0.5  # of the device pool: what is loading cannot be evicted


class Prefetcher:
    """Starts prefetches for one cache.

    Args:
        cache: whose prefixes it loads.
        depth: agents with at most so many steps are prefetched for; 0 for none.
        most_tokens: of one copy. A longer prefix comes in several, because whatever a call has
            to load meanwhile stands behind the copy that is on its way.
    """

    def __init__(self, cache: "KvflowRadixCache", depth: int, most_tokens: int) -> None:
        self._cache = cache
        self._depth = depth
        self._most_tokens = most_tokens
        self._near: dict[Owner, int] = {}  # agents within depth, and their steps

    def note_steps(self, owner: Owner, steps: int | None) -> None:
        """An agent speaks sooner or later than before. O(1)."""
        if steps is not None and 0 < steps <= self._depth:
            self._near[owner] = steps
        else:
            self._near.pop(owner, None)

    def step(self, busy: Iterable[Any], waiting: Iterable[Any]) -> None:
        """Start what is worth starting, as one copy.

        Args:
            busy: requests that run and may want slots for their next tokens.
            waiting: requests that wait; one with KV on the host loads it itself, and goes first.
        """
        if not self._near or not self._link_is_free():
            return
        if any(req.host_hit_length > 0 for req in waiting):
            return
        reserve = sum(_growth(req) for req in busy)
        budget = int(self._cache.token_to_kv_pool_allocator.size * _SHARE_IN_FLIGHT)
        left = self._most_tokens
        for candidate in in_order(self._candidates()):
            if candidate.tokens <= budget and (loaded := self._start(candidate, reserve, left)):
                budget -= candidate.tokens
                left -= loaded
                if left <= 0:
                    break
        if left < self._most_tokens:
            self._cache.start_copies()

    def _link_is_free(self) -> bool:
        controller = self._cache.cache_controller
        return not controller.load_queue and not controller.ack_load_queue

    def _candidates(self) -> Iterator[Candidate]:
        core, table = self._cache.tree_core, self._cache.calls.table
        seen: set[int] = set()
        for owner, steps in self._near.items():
            for mark in self._cache.marks.of(owner):
                node = core.ranks.end(mark)
                if node is None or node in seen:
                    continue
                seen.add(node)
                tokens = core.host_only_tokens(node)
                if tokens:
                    yield Candidate(steps, table.waiting(*owner), tokens, node, "/".join(owner))

    def _start(self, candidate: Candidate, reserve: int, most_tokens: int) -> int:
        """Queue the load of a prefix, or of its first part. Returns tokens; 0 for no room."""
        free = self._cache.token_to_kv_pool_allocator.available_size()
        if not has_room(candidate, free, reserve, self._victims()):
            return 0
        core = self._cache.tree_core
        end = core.first_part(candidate.node, most_tokens)
        absent = [node for node in core.path(end) if node.evicted]
        tokens = sum(len(node.key) for node in absent)
        if not self._cache.load_back(end):
            return 0
        core.load_is_ahead(end)
        part = candidate._replace(tokens=tokens, node=end)
        core.outcomes.started([node.id for node in absent], part)
        return tokens

    def _victims(self) -> Iterator[Victim]:
        core = self._cache.tree_core
        gone: set[int] = set()

        def bared_by(leaf: Any) -> Any:
            gone.add(leaf.id)
            return core.bared(leaf.parent, gone)

        for leaf in core.device_order.upcoming(bared_by):
            yield Victim(len(leaf.key), core.rank(leaf))


def _growth(req: Any) -> int:
    left = req.sampling_params.max_new_tokens - len(req.output_ids)
    return max(0, min(left, _STEPS_OF_DECODE))
