"""How old KV was when it was asked for, against how old it was when it was evicted."""

from collections.abc import Sequence

from kvflow.tui.history import AgeCurves
from kvflow.tui.screen import figures
from kvflow.tui.screen.chart import area
from kvflow.tui.screen.ink import Ink, Line, Piece, apart
from kvflow.tui.screen.view import View
from kvflow.tui.words import NO_FRAME


def draw(view: View, width: int, height: int) -> list[Line]:
    """Hits stand on the axis of ages, evictions hang from it; where they overlap, KV is evicted
    that is still asked for, so the pool is too small.
    """  # noqa: D205 - one sentence
    frame, curves = view.store.frame, view.store.history.ages(view.window_s)
    if frame is None:
        return [[Piece(NO_FRAME, Ink.MUTED)]]
    if curves is None:
        return [[Piece("the server does not tell", Ink.MUTED)]]
    buckets = len(curves.bounds_s) + 1
    cells = max(width // buckets, 1)
    rows = max(height - 2, 2)
    upper = (rows + 1) // 2
    hit, evicted = curves.hit or (), curves.evicted or ()
    top = max([*hit, *evicted], default=0.0)
    up = area(_wide(hit, cells), cells * buckets, upper, top, plain=view.plain)
    down = area(
        _wide(evicted, cells), cells * buckets, rows - upper, top, downwards=True, plain=view.plain
    )
    return [
        _legend(curves, width),
        *([Piece(row, Ink.DEVICE)] for row in up),
        _axis(curves.bounds_s, cells),
        *([Piece(row, Ink.OFFLOADING)] for row in down),
    ]


def _wide(shares: Sequence[float], cells: int) -> list[float]:
    """Each share as often as a chart has values in its columns."""
    return [share for share in shares for _ in range(2 * cells)]


def _legend(curves: AgeCurves, width: int) -> Line:
    hit, evicted = Piece("hit", Ink.DEVICE), Piece("evicted", Ink.OFFLOADING)
    if curves.evicted is None:
        none = "nothing was hit or lost" if curves.hit is None else "nothing lost but spent KV"
        return apart([hit] if curves.hit else [], [Piece(none, Ink.MUTED)], width)
    if curves.hit is None:
        return apart([evicted], [Piece("nothing was hit", Ink.MUTED)], width)
    left = [hit, Piece(" over ", Ink.MUTED), evicted]
    overlap = sum(map(min, curves.hit, curves.evicted))
    right = [Piece("overlap ", Ink.MUTED), Piece(figures.share(overlap), Ink.STRONG)]
    return apart(left, right, width)


def _axis(bounds_s: Sequence[float], cells: int) -> Line:
    """Upper bounds of buckets, each at the edge where its bucket ends, as many as fit."""
    text = ""
    for place, bound in enumerate(bounds_s, start=1):
        label = _bound(bound)
        gap = place * cells - len(label) - len(text)
        if gap >= (1 if text else 0):
            text += " " * gap + label
    return [Piece(text, Ink.MUTED)]


def _bound(seconds: float) -> str:
    whole = figures.seconds(seconds)
    return whole.replace(".0", "")
