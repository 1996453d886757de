"""Prefetch: bringing back, between two scheduler passes, what the agents that come next will need.

It runs on the scheduler's thread once a pass, after SGLang has taken note of the copies that are
complete in every rank, and decides from what all ranks know alike. Copies go through SGLang's own
`load_back`, on its own stream, behind its own fence against forwards that still write.

Two rules keep it out of the way (both were found by breaking them):
- a forward never reads a node on its way without waiting for it (fenced_cache.py);
- SGLang's ring of layer counters has three slots, of which a batch that runs and the next one may
  hold two. A prefetch starts only when no load is in flight, so it never takes a fourth.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvflow.engine.marks import Owner, Prefix
from kvflow.engine.near import Near
from kvflow.engine.victims import victims
from kvflow.policy.lead import FARTHEST, Foresight, LinkPace, Queue, due
from kvflow.policy.prefetch import Candidate, Cuts, has_room, in_order
from kvflow.policy.trust import Trust

if TYPE_CHECKING:
    from kvflow.engine.cache import KvflowRadixCache

_STEPS_OF_DECODE = 64  # tokens a running request may want while a prefetch is on its way
_SHARE_IN_FLIGHT = 0.5  # of the device pool: what is loading cannot be evicted
_FORWARDS_A_COPY = 32  # that a demand load may have to stand behind a copy


@dataclass(slots=True)
class _Copy:
    """The last copy that was started.

    Attributes:
        node: that ends one of its prefixes.
        tokens: in all.
        since: forwards before it.
        seen: forwards when the link was last looked at.
        late: tokens that had been late before it.
        idle: whether there was a pass without a forward since.
    """

    node: int
    tokens: int
    since: int
    seen: int
    late: int
    idle: bool = False


class Prefetcher:
    """Starts prefetches for one cache.

    Args:
        cache: whose prefixes it loads.
        depth: agents with at most so many steps are prefetched for, and farther ones whose load
            would be late otherwise; 0 for none.
        most_tokens: of one copy; less over a slow link. A longer prefix comes in several, because
            whatever a call has to load meanwhile stands behind the copy that is on its way.

    Attributes:
        doubted: times that an agent came near and was not prefetched for, because it seldom speaks.
    """

    def __init__(self, cache: "KvflowRadixCache", depth: int, most_tokens: int) -> None:
        self._cache = cache
        self._depth = depth
        self._most_tokens = most_tokens
        self._farthest = max(depth, FARTHEST) if depth else 0
        self._near = Near(self._may_be_due, self._prefixes)
        self._queue = Queue()  # what was found in this round, and is nearer than what comes
        self._link = LinkPace()
        self._foresight = Foresight()
        self._trust = Trust()
        self._copy: _Copy | None = None
        self._link_is_wanted = False  # by a call that SGLang has not looked at yet
        self._gave_way = False  # to such a call, in the last step
        self.doubted = 0

    def note_steps(self, owner: Owner, steps: int | None) -> None:
        """An agent speaks sooner or later than before. O(1)."""
        self._foresight.steps_changed(owner, steps, self._forwards())
        self._trust.steps_changed(owner, steps)
        self._near.drop(owner)
        if steps is not None and 0 < steps <= self._farthest:
            if self._trust.believes(owner, steps):
                self._near.put(owner, steps)
            else:
                self.doubted += 1

    def call_arrived(self, req: Any) -> None:
        """A request has been queued; what it finds on the host is looked up in the next pass.

        Nothing is prefetched until then, unless it is known to need no load. O(depth).
        """
        call, core = self._cache.calls.get(req.rid), self._cache.tree_core
        if call is None:
            self._link_is_wanted = True
            return
        mark = Prefix(call.tag.client, call.tag.agent, req.extra_key, req.cache_salt)
        end = core.ranks.end(mark)
        self._link_is_wanted |= end is not None and core.host_only_tokens(end) > 0

    def doubts(self, owner: Owner, steps: int) -> bool:
        """Whether an agent that is so near is not prefetched for, because it seldom speaks then."""
        return 0 < steps <= self._farthest and owner not in self._near

    def plan(self, waiting: Iterable[Any]) -> list[Candidate]:
        """What has to start now, nearest first; nothing while the link is somebody else's.

        Args:
            waiting: requests that wait; one with KV on the host loads it itself, and goes first.
        """
        self._learn()
        # Not twice in a row, else many calls a second would let nothing be prefetched.
        self._gave_way = self._link_is_wanted and not self._gave_way
        self._link_is_wanted = False
        if self._gave_way or not self._near or not self._link_is_free():
            return []
        if any(req.host_hit_length > 0 for req in waiting):
            return []
        return list(self._due())

    def start(self, planned: Iterable[Candidate], busy: Iterable[Any]) -> None:
        """Start of it what there is room for, as one copy.

        Args:
            planned: from `plan`, in this pass.
            busy: requests that run and may want slots for their next tokens.
        """
        left = most = self._tokens_a_copy()
        part, room = None, self._most_in_flight()
        reserve = sum(_growth(req) for req in busy)
        for candidate in planned:
            # What is needed sooner is not to stand behind it in the same copy, and what could only
            # begin with less than a part begins the next one.
            least = min(candidate.tokens, self._cuts(candidate).part)
            if part is not None and (candidate.steps > part.steps or least > left):
                break
            if candidate.tokens > room:
                continue
            if not self._has_room(candidate, reserve):
                room = candidate.tokens - 1  # nor for a later one, which may take less away
            elif started := self._start(candidate, left):
                part = started
                room -= candidate.tokens
                left -= part.tokens
        if part is None:
            return
        now = self._forwards()
        late = self._cache.tree_core.outcomes.late
        self._copy = _Copy(part.node, most - left, since=now, seen=now, late=late)
        self._cache.start_copies()
        self._near.begin_anew()

    def _link_is_free(self) -> bool:
        controller = self._cache.cache_controller
        return not controller.load_queue and not controller.ack_load_queue

    def _forwards(self) -> int:
        scheduler = self._cache.scheduler
        return 0 if scheduler is None else int(scheduler.forward_ct)

    def _learn(self) -> None:
        """What the link carries, from a copy that was looked at after every forward."""
        copy, now = self._copy, self._forwards()
        if copy is None:
            return
        outcomes = self._cache.tree_core.outcomes
        copy.idle |= now == copy.seen
        if now > copy.seen + 1:
            self._copy = None
        elif outcomes.is_ahead(copy.node):
            copy.seen = now
        else:
            waited = outcomes.late > copy.late
            self._link.loaded(copy.tokens, now - copy.since, idle=copy.idle, waited=waited)
            self._copy = None

    def _tokens_a_copy(self) -> int:
        carried = self._link.tokens(_FORWARDS_A_COPY)
        return self._most_tokens if carried is None else min(self._most_tokens, max(1, carried))

    def _due(self) -> Iterator[Candidate]:
        """What has to start now, nearest first."""
        now = self._forwards()
        for one in in_order(self._candidates()):
            approach, queue = self._foresight.approach(one.owner, now), self._queue
            tokens = due(one.tokens, one.steps, self._depth, approach, self._link, queue)
            stays = one.tokens if one.steps > self._depth else 0
            self._queue = Queue(queue.now + one.tokens, queue.then + stays)
            if tokens:
                there = self._cache.tree_core.depth(one.node) - one.tokens
                yield one._replace(tokens=self._cuts(one).up(there, tokens))

    def _cuts(self, candidate: Candidate) -> Cuts:
        return Cuts(self._cache.tree_core.depth(candidate.node), self._cache.page_size)

    def _candidates(self) -> Iterator[Candidate]:
        core, table = self._cache.tree_core, self._cache.calls.table
        prefixes, begins = self._near.look()
        if begins:
            self._queue = Queue()
        seen: set[int] = set()
        for prefix in prefixes:
            owner, node = (prefix.client, prefix.agent), core.ranks.end(prefix)
            steps = self._near.steps(owner)
            if steps is None or node is None or node in seen:
                continue
            seen.add(node)
            tokens = core.host_only_tokens(node)
            if tokens:
                yield Candidate(steps, table.waiting(*owner), tokens, node, owner)

    def _prefixes(self, owner: Owner) -> Iterable[Prefix]:
        return self._cache.marks.of(owner, self._cache.salts.of(owner[0]))

    def _may_be_due(self, owner: Owner, steps: int) -> bool:
        """Whether a load would have to start if all that may be on its way were this agent's."""
        approach = self._foresight.approach(owner, self._forwards())
        return due(self._most_in_flight(), steps, self._depth, approach, self._link) > 0

    def _most_in_flight(self) -> int:
        return int(self._cache.token_to_kv_pool_allocator.size * _SHARE_IN_FLIGHT)

    def _has_room(self, candidate: Candidate, reserve: int) -> bool:
        free = self._cache.token_to_kv_pool_allocator.available_size()
        return has_room(candidate, free, reserve, victims(self._cache.tree_core))

    def _start(self, candidate: Candidate, most_tokens: int) -> Candidate | None:
        """Queue the load of a prefix, or of its first part. Returns it; None if it is refused."""
        core = self._cache.tree_core
        tokens = candidate.tokens
        if tokens > most_tokens:
            there = core.depth(candidate.node) - core.host_only_tokens(candidate.node)
            tokens = self._cuts(candidate).down(there, most_tokens)
        end = core.first_part(candidate.node, tokens)
        absent = [node for node in core.path(end) if node.evicted]
        tokens = sum(len(node.key) for node in absent)
        if not self._cache.load_back(end):
            return None
        core.load_is_ahead(end)
        part = candidate._replace(tokens=tokens, node=end)
        core.outcomes.started([node.id for node in absent], part)
        return part


def _growth(req: Any) -> int:
    left = req.sampling_params.max_new_tokens - len(req.output_ids)
    return max(0, min(left, _STEPS_OF_DECODE))
