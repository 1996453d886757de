"""What the two pools are full of."""

from kvflow.frames import Pool
from kvflow.tui.screen import figures
from kvflow.tui.screen.chart import Part, bar, legend
from kvflow.tui.screen.ink import Ink, Line, Piece, apart
from kvflow.tui.screen.view import View
from kvflow.tui.words import NO_FRAME

_LINES_A_POOL = 3
_NAMES = ("in use", "evictable", "free")
_NAMED = 41
"""Cells from which on there is always room for a name beside each part's figure."""


def draw(view: View, width: int, height: int) -> list[Line]:
    """A bar for each tier, with its parts in tokens below where there is room."""
    frame = view.store.frame
    if frame is None:
        return [[Piece(NO_FRAME, Ink.MUTED)]]
    tiers = [("device", frame.device, Ink.DEVICE), ("host", frame.host, Ink.HOST)]
    with_parts = height >= len(tiers) * _LINES_A_POOL
    gap = height >= len(tiers) * _LINES_A_POOL + 1
    lines: list[Line] = []
    for name, pool, ink in tiers:
        if lines and gap:
            lines.append(_key(view, width) if width < _NAMED else [])
        if pool is None:
            lines.append([Piece("no host tier", Ink.MUTED)])
            continue
        lines += [_title(name, pool, ink, frame.bytes_per_token, width)]
        lines += [bar(parts(view, pool, ink), pool.capacity, width)]
        if with_parts:
            lines.append(_legend(view, pool, ink, width))
    return lines


def parts(view: View, pool: Pool, ink: Ink) -> list[Part]:
    """Tokens of a pool in use (by calls, in the tree or not yet), evictable, and free."""
    full, half, faint = view.glyphs.bar[:3]
    return [
        Part(pool.capacity - pool.free - pool.evictable, full, ink),
        Part(pool.evictable, half, ink),
        Part(pool.free, faint, Ink.MUTED),
    ]


def _title(name: str, pool: Pool, ink: Ink, bytes_per_token: int, width: int) -> Line:
    used = pool.capacity - pool.free
    share = used / pool.capacity if pool.capacity else 0.0
    of = (
        f"{figures.size(used * bytes_per_token)} of {figures.size(pool.capacity * bytes_per_token)}"
    )
    left = [Piece(f"{name} ", ink), Piece(figures.share(share), Ink.STRONG)]
    return apart(left, [Piece(of, Ink.MUTED)], width)


def _key(view: View, width: int) -> Line:
    """What the parts of both bars are, where their names do not fit beside their figures."""
    named = zip(view.glyphs.bar, _NAMES, strict=False)
    text = " ".join(f"{glyph}{name}" for glyph, name in named)
    return [Piece(text, Ink.MUTED)] if len(text) <= width else []


def _legend(view: View, pool: Pool, ink: Ink, width: int) -> Line:
    named = zip(_NAMES, parts(view, pool, ink), strict=True)
    return legend([(name, figures.tokens(part.amount), part) for name, part in named], width)
