"""Prefetches: what is brought back ahead of need, for whom, and whether it was in time."""

from kvflow.frames import PrefetchRecord, PrefetchStatus
from kvflow.tui.screen import figures
from kvflow.tui.screen.columns import Column
from kvflow.tui.screen.ink import Ink, Line, Piece
from kvflow.tui.screen.table import Row, Widths
from kvflow.tui.screen.view import View

EMPTY = "nothing was prefetched yet"
COLUMNS = (
    Column("status", "status", 7, right=False),
    Column("agent", "for", 16, right=False, stretch=True),
    Column("steps", "steps", 5),
    Column("tokens", "tokens", 6),
    Column("bytes", "bytes", 6, rank=2),
    Column("node", "node", 7, rank=1),
)
_INKS = {
    PrefetchStatus.LOADING: Ink.LOADING,
    PrefetchStatus.ARRIVED: Ink.DEVICE,
    PrefetchStatus.USED: Ink.MUTED,
    PrefetchStatus.LATE: Ink.ERROR,
    PrefetchStatus.WASTED: Ink.WARNING,
}


def rows(view: View, widths: Widths) -> list[Row]:
    """One row a prefetch: those on their way in the order of their start, then the newest first."""
    frame = view.store.frame
    if frame is None:
        return []
    loading = [one for one in frame.prefetches if one.status is PrefetchStatus.LOADING]
    ended = [one for one in frame.prefetches if one.status is not PrefetchStatus.LOADING]
    shown = [*loading, *reversed(ended)]
    return [Row(_cells(one, frame.bytes_per_token, view, widths), one.node) for one in shown]


def summary(view: View) -> str:
    """How many of the prefetched tokens were of use."""
    frame = view.store.frame
    if frame is None or not frame.counters.prefetched_tokens:
        return ""
    counters = frame.counters
    used = counters.prefetched_used_tokens / counters.prefetched_tokens
    late = counters.prefetched_late_tokens / counters.prefetched_tokens
    wasted = counters.prefetched_wasted_tokens / counters.prefetched_tokens
    parts = (figures.share(used), figures.share(late), figures.share(wasted))
    return "used {} late {} wasted {}".format(*parts)


def _cells(
    record: PrefetchRecord, bytes_per_token: int, view: View, widths: Widths
) -> dict[str, Line]:
    quiet = record.status is PrefetchStatus.USED
    ink = Ink.MUTED if quiet else Ink.PLAIN
    return {
        "status": [Piece(record.status, _INKS[record.status])],
        "agent": [Piece(figures.agent(record.agent, widths["agent"], view.ellipsis), ink)],
        "steps": [Piece(str(record.steps), ink)],
        "tokens": [Piece(figures.tokens(record.tokens), ink)],
        "bytes": [Piece(figures.size(record.tokens * bytes_per_token), ink)],
        "node": [Piece(f"#{record.node}", Ink.MUTED)],
    }
