"""Where the prompts of admitted calls were found: on the device, on the host, or nowhere."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from kvflow.engine.marks import Owner

Key = TypeVar("Key", bound=Hashable)

MOST_OWNERS = 4096
"""Agents that are counted one by one; of more, those that were silent for longest are dropped."""

MOST_LABELS = 256
"""Registered agents that are counted for ever; what further ones do counts as OTHER's."""


class Label(NamedTuple):
    """A registered agent, by names that an operator gave it, whoever its client is."""

    workflow: str
    agent: str


OTHER = Label("other", "other")


@dataclass(slots=True)
class HitCounts:
    """Calls that were admitted and the tokens of their prompts; none of these ever falls."""

    calls: int = 0
    device_tokens: int = 0
    host_tokens: int = 0
    computed_tokens: int = 0

    def add(self, device: int, host: int, computed: int) -> None:
        """One more call."""
        self.calls += 1
        self.device_tokens += device
        self.host_tokens += host
        self.computed_tokens += computed


class Hits:
    """Counts in all, by (client, agent), and by registered agent. Bounded by the limits above.

    Attributes:
        total: of every call, with a tag or without.
    """

    def __init__(self) -> None:
        self.total = HitCounts()
        self._owners: _Latest[Owner] = _Latest(MOST_OWNERS)
        self._labels: dict[Label, HitCounts] = {}

    def admitted(
        self, owner: Owner | None, label: Label | None, device: int, host: int, computed: int
    ) -> None:
        """A call was admitted for the first time.

        Args:
            owner: client and agent; None without a tag.
            label: of its agent, if that is registered.
            device: tokens of its prompt that were on the device, or on their way to it.
            host: tokens that had to be loaded from the host.
            computed: the rest.
        """
        counts = [self.total, self._counts_of(label or OTHER)]
        if owner is not None:
            counts.append(self._owners.get(owner))
        for one in counts:
            one.add(device, host, computed)

    def of(self, owner: Owner) -> HitCounts:
        """Counts of one agent of one client."""
        return self._owners.peek(owner)

    def labels(self) -> list[tuple[Label, HitCounts]]:
        """Counts of registered agents, at most MOST_LABELS, and those of all others."""
        return list(self._labels.items())

    def _counts_of(self, label: Label) -> HitCounts:
        known = self._labels.get(label)
        if known is None:
            others = len(self._labels) - (OTHER in self._labels)
            if label != OTHER and others >= MOST_LABELS:
                label = OTHER
            known = self._labels.setdefault(label, HitCounts())
        return known


class _Latest(Generic[Key]):
    """Counts by key, of the keys that were counted last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._of: dict[Key, HitCounts] = {}

    def get(self, key: Key) -> HitCounts:
        counts = self._of.pop(key, None) or HitCounts()
        self._of[key] = counts
        if len(self._of) > self._most:
            del self._of[next(iter(self._of))]
        return counts

    def peek(self, key: Key) -> HitCounts:
        return self._of.get(key) or HitCounts()
