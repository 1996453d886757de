"""From ink to Textual's styles: the one place where a meaning becomes a colour."""

from collections.abc import Iterable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from kvflow.tui.screen.ink import Ink, Piece, fit


class Painted(Widget):
    """A widget that draws lines of pieces itself, through Textual's line API."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"ink--{ink}" for ink in Ink),
        "line--cursor",
        "line--cursor-blurred",
        "line--changed",
        "line--header",
    }

    def ink_style(self, ink: Ink) -> Style:
        """What this ink looks like with the theme that is on, on any background."""
        style = self.get_component_rich_style(f"ink--{ink}")
        return Style(
            color=style.color, bold=style.bold, italic=style.italic, underline=style.underline
        )

    def strip(self, line: Iterable[Piece], width: int, component: str | None = None) -> Strip:
        """The line, exactly `width` cells wide.

        Args:
            line: what to draw.
            width: in cells.
            component: a `line--` component class whose style lies under the whole line.
        """
        base = self.rich_style
        if component is not None:
            lies_under = self.get_component_rich_style(component)
            base += Style(bgcolor=lies_under.bgcolor, underline=lies_under.underline)
        segments = [
            Segment(piece.text, base + self.ink_style(piece.ink)) for piece in fit(line, width)
        ]
        return Strip(segments, width)
