"""The arms of a bench: what is compared with what."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from kvflow.errors import UsageError
from kvflow.recipe.model import Mode
from kvflow.recipe.problem import did_you_mean


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to serve the workflow.

    Attributes:
        name: as it is typed and shown.
        mode: of kvflow; None for stock SGLang, with its Rust tree and without the plugin.
        label: what it is, in words.
    """

    name: str
    mode: Mode | None
    label: str

    @property
    def has_host_tier(self) -> bool:
        """Whether evicted KV is kept in host memory."""
        return self.name not in ("lru", "limit")


# In an order in which each arm is compared with those before it.
ARMS = {
    arm.name: arm
    for arm in (
        Arm("lru", None, "stock SGLang, no host tier"),
        Arm("hicache", None, "stock SGLang with HiCache"),
        Arm("limit", None, "stock SGLang, room for everything"),
        Arm("off", "off", "kvflow loaded, stock decisions"),
        Arm("evict", "evict", "kvflow: eviction by steps"),
        Arm("prefetch", "prefetch", "kvflow: and prefetch"),
        Arm("full", "full", "kvflow: and deferral"),
    )
}


def choose(text: str) -> list[Arm]:
    """The arms that a person lists: names with commas between them, or `all`.

    Returns:
        Each once, in the order of `ARMS`.

    Raises:
        UsageError: an unknown name, or none at all.
    """
    if text.strip() == "all":
        return list(ARMS.values())
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in ARMS:
            raise UsageError(
                f"no arm {name!r}{did_you_mean(name, ARMS)}",
                f"arms are {', '.join(ARMS)}",
                "--arms hicache,prefetch; --arms all takes every one",
            )
    if not names:
        raise UsageError("--arms names no arm", hint=f"arms are {', '.join(ARMS)}")
    return [arm for arm in ARMS.values() if arm.name in names]


def comparisons(arms: Sequence[str]) -> list[tuple[str, str]]:
    """Every arm with each one before it, as (arm, what it is compared with)."""
    ordered = [name for name in ARMS if name in arms]
    return [(later, earlier) for earlier, later in combinations(ordered, 2)]


def baseline(arms: Sequence[str]) -> str | None:
    """What the others are measured by: stock HiCache, else stock LRU, else the first arm."""
    for name in ("hicache", "lru", *ARMS):
        if name in arms:
            return name
    return None
