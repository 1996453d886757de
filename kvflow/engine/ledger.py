"""What the tree has done, for people to look at: evictions, hits, and backups not made."""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from kvflow.engine.ages import Ages
from kvflow.engine.hits import Hits
from kvflow.engine.regrets import Namespace, Path, Regrets, Tier
from kvflow.frames import EvictionRecord, Why
from kvflow.policy.rank import Rank

Outcome = Literal["demoted", "dropped"]
_KEPT_RECORDS = 512
_REGRETTABLE = 256  # each may cost every call a look at its tokens


class Leaving(NamedTuple):
    """A node about to leave a tier, as it is while it is still in the tree."""

    node: int
    tokens: int
    age_s: float | None
    path: Path | None


class Ledger:
    """Counters that never fall, and the latest evictions.

    Attributes:
        ages: when nodes were last used; hits: where prompts were found.
        evicted_tokens: by tier.
        regretted_tokens: of these, asked for again while the eviction was remembered.
        not_backed_up_tokens: tails that were not written to the host.
        latest: the last evictions, oldest first, at most 512.
    """

    def __init__(self) -> None:
        self.ages = Ages()
        self.hits = Hits()
        self.regrets = Regrets(_REGRETTABLE)
        self.evicted_tokens: dict[Tier, int] = {"device": 0, "host": 0}
        self.regretted_tokens = 0
        self.not_backed_up_tokens = 0
        self.latest: deque[EvictionRecord] = deque(maxlen=_KEPT_RECORDS)
        self._news: dict[int, EvictionRecord] = {}  # by number, what readers have not seen so
        self._evictions = 0

    def look(self, node: Any) -> Leaving:
        """A node as it is before it is evicted."""
        return Leaving(node.id, len(node.key), self.ages.of(node.id), self.regrets.path(node))

    def evicted(self, tier: Tier, left: Leaving, why: Why, rank: Rank, outcome: Outcome) -> None:
        """A node has left a tier, ranked as it was when it was chosen."""
        self._evictions += 1
        self.evicted_tokens[tier] += left.tokens
        self.regrets.evicted(self._evictions, tier, left.path)
        if why is not Why.SPENT:
            # What is spent goes early by design, and would hide how long the rest can stay.
            self.ages.evicted(left.age_s, left.tokens)
        record = EvictionRecord(
            seq=self._evictions,
            tier=tier,
            node=left.node,
            tokens=left.tokens,
            why=why,
            steps=-rank[1],
            outcome=outcome,
            age_s=left.age_s,
        )
        self.latest.append(record)
        self._news[record.seq] = record
        self._news.pop(record.seq - _KEPT_RECORDS, None)

    def asked(self, prompt: Sequence[int], namespace: Namespace, device: int, cached: int) -> None:
        """An admitted call asks for this prompt. Arguments as of `Regrets.asked`."""
        for seq in self.regrets.asked(prompt, namespace, device, cached):
            place = seq - self.latest[0].seq
            if place >= 0:
                record = replace(self.latest[place], regret=True)
                self.latest[place] = self._news[seq] = record
                self.regretted_tokens += record.tokens

    @property
    def has_news(self) -> bool:
        """Whether there are evictions that `take_news` has not given as they are now."""
        return bool(self._news)

    def all_is_news(self) -> None:
        """A reader begins, who has seen nothing."""
        self._news = {record.seq: record for record in self.latest}

    def take_news(self, most: int) -> tuple[EvictionRecord, ...]:
        """At most so many of the latest evictions, none that was given as it is now."""
        return tuple(self._news.pop(seq) for seq in list(islice(self._news, most)))

    def not_backed_up(self, tokens: int) -> None:
        """A tail of so many tokens was not written to the host."""
        self.not_backed_up_tokens += tokens

    def split(self, new_parent: int, child: int) -> None:
        """A node was cut in two."""
        self.ages.split(new_parent, child)

    def removed(self, node: int) -> None:
        """A node left the tree."""
        self.ages.removed(node)
        self.regrets.removed(node)

    def forget_nodes(self) -> None:
        """The tree was emptied."""
        self.ages.forget_nodes()
        self.regrets.forget_nodes()
