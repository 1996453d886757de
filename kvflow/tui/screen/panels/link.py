"""Bytes between host and device: what the engine copied, each way, over time."""

from collections.abc import Callable

from kvflow.frames import Traffic
from kvflow.telemetry.model import Gpu
from kvflow.tui.history import Point
from kvflow.tui.screen import figures
from kvflow.tui.screen.chart import area
from kvflow.tui.screen.ink import Ink, Line, Piece, apart, width_of
from kvflow.tui.screen.series import rounded_up, series
from kvflow.tui.screen.view import View


def draw(view: View, width: int, height: int) -> list[Line]:
    """Host to device grows up from the middle, device to host down from it, on one scale."""
    frame = view.store.frame
    if frame is not None and frame.traffic is None:
        return [[Piece("no host tier", Ink.MUTED)]]
    rows = max(height - 2, 2)
    upper = (rows + 1) // 2
    h2d = _values(view, width, _h2d)
    d2h = _values(view, width, _d2h)
    top = rounded_up(max([*h2d, *d2h, view.least_gbps]))
    up = area(h2d, width, upper, top, plain=view.plain)
    down = area(d2h, width, rows - upper, top, downwards=True, plain=view.plain)
    scale = f"0 to {top:g}" if top else ""
    return [
        _label(
            "H2D",
            Ink.LOADING,
            _now(view, _h2d),
            [_busy(view, _h2d_busy), _nvml(view, _received), _pending(view, _h2d_left), scale],
            width,
        ),
        *([Piece(row, Ink.LOADING)] for row in up),
        *([Piece(row, Ink.OFFLOADING)] for row in down),
        _label(
            "D2H",
            Ink.OFFLOADING,
            _now(view, _d2h),
            [_busy(view, _d2h_busy), _nvml(view, _sent), _pending(view, _d2h_left)],
            width,
        ),
    ]


def _h2d(point: Point) -> float | None:
    return point.h2d_gbps


def _d2h(point: Point) -> float | None:
    return point.d2h_gbps


def _h2d_busy(point: Point) -> float | None:
    return point.h2d_busy


def _d2h_busy(point: Point) -> float | None:
    return point.d2h_busy


def _h2d_left(traffic: Traffic) -> int:
    return traffic.h2d_pending_bytes


def _d2h_left(traffic: Traffic) -> int:
    return traffic.d2h_pending_bytes


def _received(gpu: Gpu) -> float | None:
    return gpu.pcie_rx_gbps


def _sent(gpu: Gpu) -> float | None:
    return gpu.pcie_tx_gbps


def _now(view: View, pick: Callable[[Point], float | None]) -> float | None:
    points = view.store.history.points
    return pick(points[-1]) if points else None


def _values(view: View, width: int, pick: Callable[[Point], float | None]) -> list[float]:
    points = view.store.history.points
    return series(points, pick, window_s=view.window_s, most=2 * width)


def _label(name: str, ink: Ink, gbps: float | None, notes: list[str], width: int) -> Line:
    """A way and its rate, and of the notes, the weightiest first, what there is room for."""
    left = [
        Piece(f"{name} ", ink),
        Piece(figures.rate(gbps), Ink.STRONG),
        Piece(" GB/s", Ink.MUTED),
    ]
    said = ""
    for note in filter(None, notes):
        longer = f"{said}  {note}" if said else note
        if width_of(left) + 1 + len(longer) <= width:
            said = longer
    return apart(left, [Piece(said, Ink.MUTED)], width)


def _nvml(view: View, pick: Callable[[Gpu], float | None]) -> str:
    """All traffic on the links of the server's GPUs, as their driver counts it.

    Of all GPUs, and so called, where it is not known which of several are the server's.
    """
    if view.sample is None:
        return ""
    own, every = view.sample.server_gpus, view.sample.gpus
    rates = [rate for gpu in own or every if (rate := pick(gpu)) is not None]
    whose = "" if own or len(every) == 1 else " all GPUs"
    return f"NVML {figures.rate(sum(rates))}{whose}" if rates else ""


def _busy(view: View, pick: Callable[[Point], float | None]) -> str:
    """The share of the last interval that copies took; more than all for one that began before."""
    share = _now(view, pick)
    return f"busy {figures.share(min(1.0, share))}" if share else ""


def _pending(view: View, left: Callable[[Traffic], int]) -> str:
    frame = view.store.frame
    pending = left(frame.traffic) if frame and frame.traffic else 0
    return f"{figures.size(pending)} to go" if pending else ""
