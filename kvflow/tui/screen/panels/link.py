"""Bytes between host and device: what the engine copied, each way, over time."""

from collections.abc import Callable

from kvflow.tui.history import Point
from kvflow.tui.screen import figures
from kvflow.tui.screen.chart import area
from kvflow.tui.screen.ink import Ink, Line, Piece, apart
from kvflow.tui.screen.series import rounded_up, series
from kvflow.tui.screen.view import View


def draw(view: View, width: int, height: int) -> list[Line]:
    """Host to device grows up from the middle, device to host down from it, on one scale."""
    frame = view.store.frame
    if frame is not None and frame.traffic is None:
        return [[Piece("no host tier", Ink.MUTED)]]
    rows = max(height - 2, 2)
    upper = (rows + 1) // 2
    h2d = _values(view, width, lambda point: point.h2d_gbps)
    d2h = _values(view, width, lambda point: point.d2h_gbps)
    top = rounded_up(max([*h2d, *d2h], default=0.0))
    up = area(h2d, width, upper, top, plain=view.plain)
    down = area(d2h, width, rows - upper, top, downwards=True, plain=view.plain)
    return [
        _label(
            view, "H2D", Ink.LOADING, width, lambda p: p.h2d_gbps, f"0 to {top:g}" if top else ""
        ),
        *([Piece(row, Ink.LOADING)] for row in up),
        *([Piece(row, Ink.OFFLOADING)] for row in down),
        _label(view, "D2H", Ink.OFFLOADING, width, lambda p: p.d2h_gbps, _pending(view)),
    ]


def _values(view: View, width: int, pick: Callable[[Point], float | None]) -> list[float]:
    points = view.store.history.points
    return series(points, pick, window_s=view.window_s, most=2 * width)


def _label(
    view: View,
    name: str,
    ink: Ink,
    width: int,
    pick: Callable[[Point], float | None],
    note: str,
) -> Line:
    points = view.store.history.points
    now = pick(points[-1]) if points else None
    value = [
        Piece(f"{name} ", ink),
        Piece(figures.rate(now), Ink.STRONG),
        Piece(" GB/s", Ink.MUTED),
    ]
    return apart(value, [Piece(note, Ink.MUTED)], width)


def _pending(view: View) -> str:
    frame = view.store.frame
    if frame is None or frame.traffic is None:
        return ""
    pending = frame.traffic.h2d_pending_bytes + frame.traffic.d2h_pending_bytes
    return f"{figures.size(pending)} to go" if pending else ""
