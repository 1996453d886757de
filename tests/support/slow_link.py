"""Time for a small scheduler: forwards take some, and so do loads, which a forward may wait for."""

from typing import Any

from support.going_round import GoingRound

PREFILL, DECODE = 4, 1
"""How long a forward takes."""


class SlowLink:
    """A clock of its own for agents that go round, in which loading takes time.

    Args:
        made: the agents.
        load: how long a whole prefix takes.

    Attributes:
        now: time so far.
        waited: of it, for loads that a forward wanted.
    """

    def __init__(self, made: GoingRound, load: float) -> None:
        self._made, self._cache, self._load = made, made.cache, load
        self.now = self.waited = 0.0
        self._copies: list[tuple[Any, float]] = []  # and when they are complete
        self._check = self._cache.loading_check
        self._start = self._cache.start_copies
        self._ready = self._cache.ready_to_load_host_cache
        self._cache.loading_check = self._check_by_the_clock
        self._cache.start_copies = self._start_by_the_clock
        self._cache.ready_to_load_host_cache = self._wait_by_the_clock

    def call(self, turn: int, answer: int) -> None:
        """A whole call of an agent, which leaves copies on their way."""
        mini = self._made.mini
        self._made.arrive(turn, answer=answer)
        while mini.waiting_queue or mini.running:
            self._cache.check_hicache_events()
            mini.prefill()
            self.now += PREFILL
            self._cache.check_hicache_events()
            while mini.running:
                mini.decode()
                self.now += DECODE
                self._cache.check_hicache_events()

    def end(self) -> None:
        """Let all copies come to their end."""
        self.now = float("inf")
        self._made.mini.drain()

    def _note_new_copies(self) -> None:
        known = [ack for ack, _ in self._copies]
        for ack in self._cache.cache_controller.ack_load_queue:
            if not any(ack is one for one in known):
                free = max([self.now, *(end for _, end in self._copies)])
                tokens = ack.num_bytes / self._cache.bytes_per_token
                self._copies.append((ack, free + self._load * tokens / self._made.fixed))

    def _start_by_the_clock(self) -> None:
        self._start()
        self._note_new_copies()

    def _wait_by_the_clock(self) -> Any:
        index = self._ready()
        self._note_new_copies()
        if index >= 0 and self._copies:
            wait = max(0.0, self._copies[-1][1] - self.now)
            self.waited += wait
            self.now += wait
        return index

    def _check_by_the_clock(self, finish_count: int | None = None) -> None:
        complete = 0
        while self._copies and self._copies[0][1] <= self.now:
            self._copies.pop(0)[0].finish_event.synchronize()
            complete += 1
        if complete:
            self._check(complete)
