"""Evictions: what had to go, why it was first, and whether it was asked for again."""

from collections.abc import Sequence

from kvflow.frames import EvictionRecord, Why
from kvflow.tui.screen import figures
from kvflow.tui.screen.columns import Column
from kvflow.tui.screen.ink import Ink, Line, Piece
from kvflow.tui.screen.table import Row, Rows, Widths
from kvflow.tui.screen.view import View

EMPTY = "nothing was evicted yet"
COLUMNS = (
    Column("node", "node", 7),
    Column("tier", "from", 6, right=False, rank=4),
    Column("tokens", "tokens", 6, rank=2),
    Column("why", "why", 8, right=False, rank=1),
    Column("steps", "steps", 5, rank=6),
    Column("outcome", "outcome", 7, right=False, rank=5),
    Column("age", "unused", 6, rank=7),
    Column("regret", "again", 5, right=False, stretch=True, rank=3),
)
_REGRET = "again"


def rows(view: View, widths: Widths) -> Sequence[Row]:
    """One row an eviction, the newest first."""
    del widths  # every cell is short
    frame = view.store.frame
    return Rows(frame.evictions[::-1] if frame else (), lambda one: Row(_cells(one), one.node))


def summary(view: View) -> str:
    """How many of the latest were regretted."""
    frame = view.store.frame
    if frame is None or not frame.evictions:
        return ""
    regretted = sum(record.regret for record in frame.evictions)
    return f"{regretted} of the last {len(frame.evictions)} asked for again"


def _cells(record: EvictionRecord) -> dict[str, Line]:
    steps = [Piece(figures.steps(record.steps))] if record.why is Why.STEPS else []
    lost = record.outcome == "dropped" and record.why is not Why.SPENT
    return {
        "node": [Piece(f"#{record.node}", Ink.MUTED)],
        "tier": [Piece(record.tier, Ink.DEVICE if record.tier == "device" else Ink.HOST)],
        "tokens": [Piece(figures.tokens(record.tokens))],
        "why": [Piece(record.why)],
        "steps": steps,
        "outcome": [Piece(record.outcome, Ink.WARNING if lost else Ink.MUTED)],
        "age": [Piece(figures.seconds(record.age_s), Ink.MUTED)],
        "regret": [Piece(_REGRET, Ink.ERROR)] if record.regret else [],
    }
