"""Why a node is kept, and why one was evicted: in words and numbers, from frames alone.

Pure. Source of the rules: kvflow/policy/rank.py (paper section 1.2; invariants 8 to 10, 18).
"""

from dataclasses import dataclass, field

from kvflow.frames import EvictionRecord
from kvflow.tui.store import Store


@dataclass(frozen=True, slots=True)
class Explanation:
    """What decides over a node.

    Attributes:
        verdict: one line, such as "kept: app/planner needs it in 1 step".
        reasons: sentences, the weightiest first.
        numbers: what they are made of, by name, for `--json`.
    """

    verdict: str
    reasons: tuple[str, ...]
    numbers: dict[str, int | float | str | None] = field(default_factory=dict)


def why_kept(store: Store, node_id: int) -> Explanation | None:
    """Why a node is where it is, and what would go before it; None if it is not in the tree."""
    raise NotImplementedError


def why_evicted(store: Store, record: EvictionRecord) -> Explanation:
    """Why a node left a tier."""
    raise NotImplementedError
