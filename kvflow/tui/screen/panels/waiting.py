"""Waiting calls: how much of each is where, and which were passed over."""

from collections.abc import Sequence

from kvflow.frames import WaitingCall
from kvflow.tui.owners import only_client
from kvflow.tui.screen import figures
from kvflow.tui.screen.chart import Part, bar
from kvflow.tui.screen.columns import Column
from kvflow.tui.screen.ink import Ink, Line, Piece
from kvflow.tui.screen.table import Row, Rows, Widths
from kvflow.tui.screen.view import View

EMPTY = "no call is waiting"
COLUMNS = (
    Column("agent", "call", 16, right=False, stretch=True),
    Column("prompt", "prompt", 6, rank=1),
    Column("bar", "found", 8, right=False, stretch=True, rank=2),
    Column("host", "host", 5, rank=4),
    Column("deferred", "passed", 6, rank=3),
    Column("run", "run", 8, right=False, rank=5),
)


def rows(view: View, widths: Widths) -> Sequence[Row]:
    """One row a call, in queue order."""
    frame = view.store.frame
    if frame is None:
        return []
    client = only_client(frame.agents)
    return Rows(frame.waiting_calls, lambda call: Row(_cells(call, client, view, widths)))


def _cells(call: WaitingCall, client: str | None, view: View, widths: Widths) -> dict[str, Line]:
    full, half, faint = view.glyphs.bar[:3]
    unknown = max(call.prompt_tokens - call.device_tokens - call.host_tokens, 0)
    parts = [
        Part(call.device_tokens, full, Ink.DEVICE),
        Part(call.host_tokens, half, Ink.HOST),
        Part(unknown, faint, Ink.MUTED),
    ]
    name = call.agent or "untagged"
    deferred = [Piece(str(call.deferred_passes), Ink.WARNING)] if call.deferred_passes else []
    return {
        "agent": [Piece(figures.agent(name, widths["agent"], view.ellipsis, client))],
        "prompt": [Piece(figures.tokens(call.prompt_tokens))],
        "bar": bar(parts, call.prompt_tokens, widths.get("bar", 0)),
        "host": [Piece(figures.tokens(call.host_tokens))] if call.host_tokens else [],
        "deferred": deferred,
        "run": [Piece(_end_of(call.run, widths.get("run", 0), view.ellipsis), Ink.MUTED)],
    }


def _end_of(run: str, width: int, ellipsis: str) -> str:
    """What tells runs apart: they are mostly numbered at their end."""
    if len(run) <= width:
        return run
    return f"{ellipsis}{run[len(ellipsis) - width :]}" if width > len(ellipsis) else ""
