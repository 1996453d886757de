"""Waiting calls: how much of each is where, and which were passed over."""

from kvflow.frames import WaitingCall
from kvflow.tui.screen import figures
from kvflow.tui.screen.chart import Part, bar
from kvflow.tui.screen.columns import Column
from kvflow.tui.screen.ink import Ink, Line, Piece
from kvflow.tui.screen.table import Row, Widths
from kvflow.tui.screen.view import View

EMPTY = "no call is waiting"
COLUMNS = (
    Column("agent", "call", 16, right=False, stretch=True),
    Column("prompt", "prompt", 6),
    Column("bar", "found", 8, right=False, stretch=True),
    Column("host", "host", 5, rank=2),
    Column("deferred", "passed", 6, rank=1),
    Column("run", "run", 6, right=False, rank=3),
)


def rows(view: View, widths: Widths) -> list[Row]:
    """One row a call, in queue order."""
    frame = view.store.frame
    calls = frame.waiting_calls if frame else ()
    return [Row(_cells(call, view, widths)) for call in calls]


def _cells(call: WaitingCall, view: View, widths: Widths) -> dict[str, Line]:
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
        "agent": [Piece(figures.agent(name, widths["agent"], view.ellipsis))],
        "prompt": [Piece(figures.tokens(call.prompt_tokens))],
        "bar": bar(parts, call.prompt_tokens, widths.get("bar", 0)),
        "host": [Piece(figures.tokens(call.host_tokens))] if call.host_tokens else [],
        "deferred": deferred,
        "run": [Piece(call.run, Ink.MUTED)],
    }
