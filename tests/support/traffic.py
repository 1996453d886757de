"""Random traffic of agents and others against a real cache: everything a scheduler can do to it.

A run of it is told by its seed alone, so two caches that behave alike see the same.
"""

import random
from collections.abc import Callable
from typing import Any

import support.engine  # noqa: F401 - before SGLang
from sglang.srt.mem_cache.base_prefix_cache import EvictParams
from support.mini_scheduler import MiniScheduler

from kvflow.engine.cache import KvflowRadixCache

AGENTS = 8
CLIENTS = ("app", "other")
STEPS = (0, 1, 1, 2, 3, 5, 8, 11)
SIZES = {1: (180, 60), 16: (640, 200), 64: (1920, 640)}
"""By page size: tokens of a device pool that is always too small, and of the longest prompt."""

MODES = ("off", "evict", "prefetch", "full")


class Traffic:
    """Operations drawn one after another.

    Args:
        scheduler: what they are done to.
        seed: tells the whole run.
        longest: most tokens of a prompt.
        tagged: share of calls that carry a tag.
        switches: whether the mode is switched now and then.
    """

    def __init__(
        self, scheduler: MiniScheduler, seed: int, longest: int, *, tagged: float, switches: bool
    ) -> None:
        self.scheduler, self.cache = scheduler, scheduler.cache
        self.rng = random.Random(seed)
        self.longest = longest
        self.tagged = tagged
        self._draws: list[tuple[int, Callable[[], None]]] = [
            (25, self._arrive),
            (30, self._prefill),
            (30, scheduler.decode),
            (20, scheduler.acknowledge),
            (3, self._abort_waiting),
            (3, self._abort_admitted),
            (3, self._retract),
            (3, self._evict),
            (2, self._evict_host),
            (4, self._tick),
            (2, self._switch if switches else self._tick),
            (1, self._flush),
        ]
        self._common = [self._words(longest // 8), self._words(longest // 4)]
        self._fixed = [self._prompt_of_agent() for _ in range(AGENTS)]

    def step(self) -> None:
        """One operation."""
        weights = [weight for weight, _ in self._draws]
        [(_, operation)] = self.rng.choices(self._draws, weights)
        operation()

    def _words(self, length: int) -> list[int]:
        return [self.rng.randrange(3) for _ in range(length)]

    def _prompt_of_agent(self) -> list[int]:
        return self.rng.choice(self._common) + self._words(self.rng.randrange(self.longest // 2))

    def _arrive(self) -> None:
        if len(self.scheduler.waiting_queue) >= 6:
            return
        agent = self.rng.randrange(AGENTS)
        prompt = self._fixed[agent] + self._words(self.rng.randrange(1, self.longest // 4))
        if self.rng.random() < 0.2:
            prompt = prompt[: self.rng.randrange(1, len(prompt))]
        self.scheduler.arrive(
            prompt,
            self._tag(agent) if self.rng.random() < self.tagged else None,
            answer=self.rng.randrange(1, 6),
            extra_key="lora" if self.rng.random() < 0.1 else None,
        )

    def _tag(self, agent: int) -> dict[str, Any]:
        length = len(self._fixed[agent])
        fixed = self.rng.choice([length, length, length, length // 2, length + 7, 0, None, 1 << 20])
        tag: dict[str, Any] = {
            "client": self.rng.choice(CLIENTS),
            "workflow": "w",
            "run": f"run{self.rng.randrange(4)}",
            "agent": f"agent{agent}",
            "final": self.rng.random() < 0.1,
        }
        if fixed is not None:
            tag["fixed_tokens"] = fixed
        # Steps jump both ways, as a client's own graph may have it.
        steps = {f"agent{a}": self.rng.choice(STEPS) for a in range(AGENTS)}
        return {"kvflow": tag, "kvflow_steps": steps}

    def _prefill(self) -> None:
        self.scheduler.prefill()

    def _abort_waiting(self) -> None:
        if self.scheduler.waiting_queue:
            self.scheduler.abort(self.rng.choice(self.scheduler.waiting_queue))

    def _abort_admitted(self) -> None:
        admitted = [
            *self.scheduler.running,
            *([self.scheduler.chunked] if self.scheduler.chunked else []),
        ]
        if admitted:
            self.scheduler.abort(self.rng.choice(admitted))

    def _retract(self) -> None:
        if self.scheduler.running:
            self.scheduler.retract(self.rng.choice(self.scheduler.running))

    def _evict(self) -> None:
        self.cache.evict(EvictParams(num_tokens=self.rng.randrange(1, self.longest)))

    def _evict_host(self) -> None:
        if self.cache.cache_controller is not None:
            self.cache.evict_host(self.rng.randrange(1, self.longest))

    def _tick(self) -> None:
        for _ in range(self.rng.randrange(1, 200)):
            if isinstance(self.cache, KvflowRadixCache):
                self.cache.tick()

    def _switch(self) -> None:
        self.cache.switch(self.rng.choice(MODES))

    def _flush(self) -> None:
        if self.rng.random() < 0.3:
            self.scheduler.drain()
            self.scheduler.flush()
