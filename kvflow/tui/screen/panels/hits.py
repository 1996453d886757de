"""Where the tokens of admitted prompts were found, over time."""

from kvflow.frames import State
from kvflow.tui.glyphs import LETTERS
from kvflow.tui.history import Point
from kvflow.tui.screen import figures
from kvflow.tui.screen.chart import Part, legend, stacked
from kvflow.tui.screen.ink import Ink, Line
from kvflow.tui.screen.series import series
from kvflow.tui.screen.view import View

_NAMES = ("device", "host", "computed")
_SHORT = (LETTERS[State.DEVICE], LETTERS[State.HOST], "new")
_INKS = (Ink.DEVICE, Ink.HOST, Ink.MUTED)


def draw(view: View, width: int, height: int) -> list[Line]:
    """Shares of each interval on top of each other: device lowest, computed highest."""
    points = view.store.history.points
    picks = (
        lambda point: point.device_hits,
        lambda point: point.host_hits,
        lambda point: point.computed,
    )
    shares = [series(points, pick, window_s=view.window_s, most=width) for pick in picks]
    columns = [
        [Part(*part) for part in zip(amounts, view.glyphs.bar, _INKS, strict=False)]
        for amounts in zip(*shares, strict=True)
    ]
    return [_legend(view, _latest(view), width), *stacked(columns, width, height - 1)]


def _latest(view: View) -> Point | None:
    """The last interval in which a prompt was admitted."""
    points = reversed(view.store.history.points)
    return next((point for point in points if point.device_hits is not None), None)


def _legend(view: View, point: Point | None, width: int) -> Line:
    shares = (None,) * 3 if point is None else (point.device_hits, point.host_hits, point.computed)
    parts = zip(_NAMES, shares, view.glyphs.bar, _INKS, strict=False)
    named = [(name, figures.share(share), Part(0, glyph, ink)) for name, share, glyph, ink in parts]
    return legend(named, width, _SHORT)
