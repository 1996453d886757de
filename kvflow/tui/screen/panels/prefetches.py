"""Prefetches: what is brought back ahead of need, for whom, and whether it was in time."""

from collections.abc import Sequence

from kvflow.frames import Frame, PrefetchRecord, PrefetchStatus
from kvflow.tui.owners import only_client
from kvflow.tui.screen import figures
from kvflow.tui.screen.columns import Column
from kvflow.tui.screen.ink import Ink, Line, Piece
from kvflow.tui.screen.table import Row, Rows, Widths
from kvflow.tui.screen.view import View

EMPTY = "nothing was prefetched yet"
COLUMNS = (
    Column("status", "status", 7, right=False, rank=1),
    Column("agent", "for", 16, right=False, stretch=True),
    Column("steps", "steps", 5, rank=2),
    Column("tokens", "tokens", 6, rank=3),
    Column("bytes", "bytes", 6, rank=5),
    Column("node", "node", 7, rank=4),
)
_INKS = {
    PrefetchStatus.LOADING: Ink.LOADING,
    PrefetchStatus.ARRIVED: Ink.DEVICE,
    PrefetchStatus.USED: Ink.MUTED,
    PrefetchStatus.LATE: Ink.ERROR,
    PrefetchStatus.WASTED: Ink.WARNING,
}


def rows(view: View, widths: Widths) -> Sequence[Row]:
    """One row a prefetch: those on their way in the order of their start, then the newest first."""
    frame = view.store.frame
    if frame is None:
        return []
    loading = [one for one in frame.prefetches if one.status is PrefetchStatus.LOADING]
    ended = [one for one in frame.prefetches if one.status is not PrefetchStatus.LOADING]
    shown = [*loading, *reversed(ended)]
    client = only_client(frame.agents)
    return Rows(shown, lambda one: Row(_cells(one, frame, client, view, widths), one.node))


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
    return "used {} ({} late) wasted {}".format(*parts)


def _cells(
    record: PrefetchRecord, frame: Frame, client: str | None, view: View, widths: Widths
) -> dict[str, Line]:
    quiet = record.status is PrefetchStatus.USED
    ink = Ink.MUTED if quiet else Ink.PLAIN
    name = figures.agent(record.agent, widths["agent"], view.ellipsis, client)
    return {
        "status": [Piece(record.status, _INKS[record.status])],
        "agent": [Piece(name, ink)],
        "steps": [Piece(figures.steps(record.steps), ink)],
        "tokens": [Piece(figures.tokens(record.tokens), ink)],
        "bytes": [Piece(figures.size(record.tokens * frame.bytes_per_token), ink)],
        "node": [Piece(f"#{record.node}", Ink.MUTED)],
    }
