"""Ranks of one model: each has its own cache and its own copies, which end when they end."""

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from support.going_round import GoingRound
from support.real_cache import FULL, nodes, tokens_to

RANKS = 2
PATIENCE_S = 60.0


class Meeting:
    """What torch's all_reduce is to ranks: each brings numbers, and all get the least."""

    def __init__(self) -> None:
        self._brought: dict[int, torch.Tensor] = {}
        self._barrier = threading.Barrier(RANKS, timeout=PATIENCE_S)

    def least(self, rank: int, mine: torch.Tensor) -> None:
        self._brought[rank] = mine.clone()
        self._barrier.wait()
        agreed = torch.stack(list(self._brought.values())).amin(0)
        self._barrier.wait()  # nobody brings the next before all have read this
        mine.copy_(agreed)

    def call_off(self) -> None:
        """Let nobody wait for a rank that has failed."""
        self._barrier.abort()


class Rank:
    """One rank's scheduler, which lives through a history.

    Args:
        number: of the rank; it notices at other times than the rest that a copy is complete.
        agree: takes its numbers, and puts the agreed ones in their place.
        mode: of kvflow.

    Attributes:
        decided: after each pass, all that was decided until then.
    """

    def __init__(self, number: int, agree: Callable[[int, torch.Tensor], None], mode: str) -> None:
        self.made = GoingRound(1, mode, prefetch_tokens=40)
        self._attention = random.Random(number)
        self.made.cache._count_ready_acks = self._noticed
        self.made.cache._all_reduce_attn_groups = lambda mine, op: agree(number, mine)
        self.decided: list[Any] = []

    def live(self, history: random.Random, passes: int) -> None:
        """Calls come, go away and are answered; then everything comes to its end."""
        for turn in range(passes):
            if history.random() < 0.5:
                self._call(history, turn)
            if history.random() < 0.05:
                self._hang_up(history)
            self._pass()
        while self._is_busy():
            self._pass()
        self.made.cache.sanity_check()

    def _call(self, history: random.Random, turn: int) -> None:
        agent = turn if history.random() < 0.8 else history.randrange(self.made.agents)
        self.made.arrive(agent, answer=history.randint(1, 6), run=f"run {history.randrange(2)}")

    def _hang_up(self, history: random.Random) -> None:
        if calls := [*self.made.mini.waiting_queue, *self.made.mini.running]:
            self.made.mini.abort(history.choice(calls))

    def _pass(self) -> None:
        self.made.cache.check_hicache_events()
        self.made.mini.prefill()
        self.made.mini.decode()
        self.decided.append(tuple(self._state()))

    def _is_busy(self) -> bool:
        mini, cache = self.made.mini, self.made.cache
        copies = cache.ongoing_load_back or cache.ongoing_write_through
        return bool(mini.waiting_queue or mini.running or copies)

    def _noticed(self, queue: Any) -> int:
        """How many copies this rank knows to be complete: one after the other, some time."""
        noticed = 0
        while noticed < len(queue) and self._attention.random() < 0.8:
            queue[noticed].finish_event.synchronize()
            noticed += 1
        return noticed

    def _state(self) -> Iterator[Any]:
        mini, outcomes = self.made.mini, self.made.outcomes
        yield tuple(req.rid for req in mini.waiting_queue)
        yield tuple((req.rid, len(req.output_ids)) for req in mini.running)
        yield tuple(mini.hits)
        yield (outcomes.issued, outcomes.used, outcomes.late, outcomes.wasted)
        for node in nodes(self.made.cache):
            data = node.component_data[FULL]
            on_both = data.value is not None, data.host_value is not None
            yield tuple(tokens_to(node)), *on_both, data.lock_ref


def live_together(ranks: list[Rank], meeting: Meeting, seed: int, passes: int) -> None:
    """The same history on every rank, each on a thread of its own. Raises what the first raised."""
    errors: list[BaseException] = []

    def live(rank: Rank) -> None:
        try:
            rank.live(random.Random(seed), passes)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)
            meeting.call_off()

    threads = [threading.Thread(target=live, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
