"""A server as one line a tick: `kvflow top --stat`."""

import time
from typing import Final

from kvflow.tui.history import Point
from kvflow.tui.screen import figures
from kvflow.tui.screen.columns import Column, header, line_of, place
from kvflow.tui.screen.ink import Line, Piece

WIDTH: Final = 78
TICKS_A_HEADER: Final = 20
_COLUMNS = (
    Column("time", "time", 8),
    Column("running", "run", 4),
    Column("waiting", "wait", 4),
    Column("device", "dev", 4),
    Column("host", "host", 4),
    Column("device_hits", "dev", 6),
    Column("host_hits", "host", 4),
    Column("computed", "miss", 4),
    Column("h2d", "h2d", 6),
    Column("d2h", "d2h", 5),
    Column("evicted", "evict", 7),
    Column("prefetched", "fetch", 6),
)
_GROUPS = (
    Column("left", "", 18),
    Column("pools", "in use", 9),
    Column("prompts", "prompts", 16),
    Column("link", "GB/s", 12),
    Column("tokens", "tokens/s", 14),
)


def titles() -> list[Line]:
    """Two lines that say what stands in the columns."""
    return [header(place(_GROUPS, WIDTH)), header(place(_COLUMNS, WIDTH))]


def tick(point: Point) -> Line:
    """Counts, shares of the pools in use, where prompts were found, and rates."""
    cells = {
        "time": time.strftime("%H:%M:%S", time.localtime(point.time_s)),
        "running": str(point.running),
        "waiting": str(point.waiting),
        "device": figures.share(point.device_used),
        "host": figures.share(point.host_used),
        "device_hits": figures.share(point.device_hits),
        "host_hits": figures.share(point.host_hits),
        "computed": figures.share(point.computed),
        "h2d": figures.rate(point.h2d_gbps),
        "d2h": figures.rate(point.d2h_gbps),
        "evicted": _tokens(point.evicted_tokens_s),
        "prefetched": _tokens(point.prefetched_tokens_s),
    }
    line = {name: [Piece(text)] for name, text in cells.items()}
    return line_of(place(_COLUMNS, WIDTH), line)


def _tokens(rate: float | None) -> str:
    return "-" if rate is None else figures.tokens(rate)
