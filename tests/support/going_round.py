"""Agents that speak in turn in a pool that is too small for them, so that prefetch always works."""

from collections.abc import Mapping
from typing import Any

import support.engine  # noqa: F401 - before SGLang
from support.mini_scheduler import MiniScheduler
from support.real_cache import build
from support.tags import by

AGENTS = 4
ANSWER = 40
"""Most tokens of an answer."""


class GoingRound:
    """A cycle of agents, each with a prefix of its own; room for two prefixes and a call.

    Args:
        page: tokens a page.
        mode: of kvflow.
        policy: settings of it.
        tokens: of the device pool; None: two prefixes and what a call adds.
        host_ratio: host pool by device pool.
        agents: how many take turns.
    """

    def __init__(
        self,
        page: int = 1,
        mode: str = "full",
        *,
        tokens: int | None = None,
        host_ratio: float = 4.0,
        agents: int = AGENTS,
        **policy: Any,
    ) -> None:
        self.fixed = max(64, 4 * page)
        settings = {"mode": mode, "policy": policy}
        pool = tokens or 2 * self.fixed + max(64, 2 * page)
        cache = build(page, tokens=pool, host_ratio=host_ratio, settings=settings)
        self.mini = MiniScheduler(cache, chunk=1 << 12)
        self.cache = self.mini.cache
        self.agents = agents
        self._tails = 0

    @property
    def outcomes(self) -> Any:
        return self.cache.tree_core.outcomes

    def fixed_prompt(self, agent: int) -> list[int]:
        return [1000 * (agent + 1) + i for i in range(self.fixed)]

    def arrive(
        self,
        agent: int,
        answer: int = 4,
        run: str = "run",
        steps: Mapping[str, int] | None = None,
    ) -> Any:
        """A call of an agent is queued; its prompt ends as none before.

        Its steps are those of the cycle, unless others are given.
        """
        agent %= self.agents
        self._tails += 1
        steps = steps or {
            f"a{i}": (i - agent) % self.agents or self.agents for i in range(self.agents)
        }
        tag = by(f"a{agent}", self.fixed, steps=steps, run=run)
        return self.mini.arrive([*self.fixed_prompt(agent), self._tails, 9], tag, answer=answer)

    def serve(self, agent: int, answer: int = 2) -> Any:
        """A whole call, and what is prefetched while it runs."""
        req = self.arrive(agent, answer)
        self.mini.prefill()
        self.cache.check_hicache_events()
        self.mini.drain()
        return req

    def absent(self) -> int:
        """An agent whose prefix is on the host alone."""
        return next(agent for agent in range(self.agents) if not self.on_device(agent))

    def end_of(self, agent: int) -> Any:
        """The node that ends an agent's prefix; None if there is none."""
        return self.cache.tree_core.ranks.end(("app", f"a{agent % self.agents}", None, None))

    def on_device(self, agent: int) -> int:
        """Tokens of an agent's prefix that are on the device."""
        end = self.end_of(agent)
        path = [] if end is None else self.cache.tree_core.path(end)
        return sum(len(node.key) for node in path if not node.evicted)
