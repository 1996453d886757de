"""What the two pools are full of."""

from kvflow.frames import Pool
from kvflow.tui.screen import figures
from kvflow.tui.screen.chart import Part, bar, legend
from kvflow.tui.screen.ink import Ink, Line, Piece, apart
from kvflow.tui.screen.view import View

_LINES_A_POOL = 3


def draw(view: View, width: int, height: int) -> list[Line]:
    """A bar for each tier, with its parts in tokens below where there is room."""
    frame = view.store.frame
    if frame is None:
        return []
    tiers = [("device", frame.device, Ink.DEVICE), ("host", frame.host, Ink.HOST)]
    with_parts = height >= len(tiers) * _LINES_A_POOL
    gap = height >= len(tiers) * _LINES_A_POOL + 1
    lines: list[Line] = []
    for name, pool, ink in tiers:
        if lines and gap:
            lines.append([])
        if pool is None:
            lines.append([Piece("no host tier", Ink.MUTED)])
            continue
        lines += [_title(name, pool, ink, frame.bytes_per_token, width)]
        lines += [bar(parts(view, pool, ink), pool.capacity, width)]
        if with_parts:
            lines.append(_legend(view, pool, ink, width))
    return lines


def parts(view: View, pool: Pool, ink: Ink) -> list[Part]:
    """Locked, evictable and free tokens of a pool, as parts of its bar."""
    full, half, faint = view.glyphs.bar[:3]
    return [
        Part(pool.locked, full, ink),
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


def _legend(view: View, pool: Pool, ink: Ink, width: int) -> Line:
    names = ("locked", "evictable", "free")
    named = zip(names, parts(view, pool, ink), strict=True)
    return legend([(name, figures.tokens(part.amount), part) for name, part in named], width)
