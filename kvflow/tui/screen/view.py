"""What the panels are drawn from."""

from typing import NamedTuple

from kvflow.telemetry.model import Sample
from kvflow.tui.glyphs import Glyphs
from kvflow.tui.store import Store

WINDOWS_S = (60, 300, 900)
"""How far charts look back: one minute, five, fifteen."""


class View(NamedTuple):
    """A moment of a server, and how it is to be drawn.

    Attributes:
        store: what is known of the server.
        glyphs: the character set.
        window_s: how far charts look back.
        plain: no characters beyond ASCII.
        sample: the machine that the console runs on, if it is looked at.
        least_gbps: what the axis of the link goes to at least, so that two have the same.
    """

    store: Store
    glyphs: Glyphs
    window_s: int
    plain: bool
    sample: Sample | None = None
    least_gbps: float = 0.0

    @property
    def boot(self) -> str | None:
        """Which start of the server this is of: node ids begin anew with each."""
        return self.store.frame.boot if self.store.frame else None

    @property
    def ellipsis(self) -> str:
        """What stands for what was cut off."""
        return ".." if self.plain else "…"
