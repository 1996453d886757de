"""Which agents hold conversations: their next call in the same run extends their last one.

What such an agent leaves behind will be asked for again, so it is not spent.
Learned from the prompts themselves, because hits would no longer show it once the tails of a
conversation were evicted.
"""

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kvflow.prefixes import PROMPT_END, Identity


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds memory (invariant 39).

    Attributes:
        calls: most last calls that are kept, of any agent in any run, some 300 bytes each; the run
            that was quiet for longest goes with all of its own.
        agents: most agents about whom something is known; the one of whom nothing new was learned
            for longest goes.
    """

    calls: int = 8192
    agents: int = 4096


class _Call(NamedTuple):
    tokens: int  # of the prompt, without its end
    digest: bytes  # of these; token ids are not kept


class Conversations:
    """Agents that hold conversations, as far as their calls have shown them.

    A pure function of the calls and ends it is told of, in their order.

    Args:
        limits: what is kept.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._runs: OrderedDict[tuple[str, str], dict[Identity, _Call]] = OrderedDict()
        self._converses: OrderedDict[Identity, bool] = OrderedDict()
        self._calls = 0

    def __len__(self) -> int:
        """How many last calls are kept."""
        return self._calls

    def observe(self, identity: Identity, run: str, token_ids: Sequence[int]) -> bool:
        """A call is here. O(its prompt), at the speed of a hash.

        Calls of one agent that overlap in one run show as no conversation, since none of them
        extends another.

        Args:
            identity: whose call.
            run: the client's name of the run that it belongs to.
            token_ids: its prompt.

        Returns:
            Whether the latest that is known of the agent says that it holds conversations.
        """
        run_key = (identity.client, run)
        calls = self._runs.setdefault(run_key, {})
        self._runs.move_to_end(run_key)
        last = calls.get(identity)
        calls[identity], extends = _compare(last, token_ids)
        if last is None:
            self._calls += 1
            self._bound_calls()
        else:
            self._learn(identity, extends)
        return self.converses(identity)

    def converses(self, identity: Identity) -> bool:
        """Whether an agent is known to hold conversations."""
        return self._converses.get(identity, False)

    def end(self, client: str, run: str) -> None:
        """A run is over: another one of its name begins anew. Nothing happens for an unknown one.

        What was learned about its agents stays.
        """
        self._calls -= len(self._runs.pop((client, run), {}))

    def _learn(self, identity: Identity, extends: bool) -> None:
        self._converses[identity] = extends
        self._converses.move_to_end(identity)
        if len(self._converses) > self.limits.agents:
            self._converses.popitem(last=False)

    def _bound_calls(self) -> None:
        while self._calls > self.limits.calls:
            _, calls = self._runs.popitem(last=False)
            self._calls -= len(calls)


def _compare(last: _Call | None, token_ids: Sequence[int]) -> tuple[_Call, bool]:
    """A call as it is kept, and whether its prompt extends that of the last one."""
    prompt = memoryview(array("q", token_ids))
    tokens = max(len(prompt) - PROMPT_END, 0)
    digest = hashlib.blake2b(digest_size=16)
    begun, extends = 0, False
    if last is not None and 0 < last.tokens < tokens:
        begun = last.tokens
        digest.update(prompt[:begun])
        extends = digest.digest() == last.digest
    digest.update(prompt[begun:tokens])
    return _Call(tokens, digest.digest()), extends
