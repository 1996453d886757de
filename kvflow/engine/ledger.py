"""What the tree has done, for people to look at: evictions, and backups that were not made."""

from collections import deque
from typing import Literal, NamedTuple

from kvflow.frames import Why
from kvflow.policy.rank import Rank

Tier = Literal["device", "host"]
Outcome = Literal["demoted", "dropped"]
_KEPT_RECORDS = 512


class Eviction(NamedTuple):
    """One node that left a tier."""

    seq: int
    tier: Tier
    node: int
    tokens: int
    why: Why
    steps: int  # that it ranked as
    outcome: Outcome  # demoted: a host copy is left; dropped: nothing is


class Ledger:
    """Counters that never fall, and the latest evictions.

    Attributes:
        evicted_tokens: by tier.
        not_backed_up_tokens: tails that were not written to the host.
        latest: the last evictions, oldest first, at most 512.
    """

    def __init__(self) -> None:
        self.evicted_tokens: dict[Tier, int] = {"device": 0, "host": 0}
        self.evictions = 0
        self.not_backed_up_tokens = 0
        self.latest: deque[Eviction] = deque(maxlen=_KEPT_RECORDS)

    def evicted(
        self, tier: Tier, node: int, tokens: int, why: Why, rank: Rank, outcome: Outcome
    ) -> None:
        """A node left a tier, ranked as it was when it was chosen."""
        self.evictions += 1
        self.evicted_tokens[tier] += tokens
        steps = -rank[1]
        record = Eviction(self.evictions, tier, node, tokens, why, steps, outcome)
        self.latest.append(record)

    def not_backed_up(self, tokens: int) -> None:
        """A tail of so many tokens was not written to the host."""
        self.not_backed_up_tokens += tokens
