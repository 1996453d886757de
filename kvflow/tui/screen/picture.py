"""A panel that shows one picture, as high as it likes to be."""

from collections.abc import Callable

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kvflow.tui.screen.ink import Line
from kvflow.tui.screen.paint import Painted
from kvflow.tui.screen.view import View

Draw = Callable[[View, int, int], list[Line]]
"""From a view, a width and a height in cells to as many lines as the picture has."""


class Picture(Painted, ScrollView):
    """Draws what it is shown; while it has no place on the screen it costs nothing.

    Args:
        draw: makes the lines.
        id: of the widget.
        scrolls: it can be higher than its panel, and takes the focus to be scrolled.
    """

    def __init__(self, draw: Draw, *, id: str, scrolls: bool = False) -> None:  # noqa: A002
        super().__init__(id=id)
        self.can_focus = scrolls
        self._scrolls = scrolls
        self._draw = draw
        self._view: View | None = None
        self._lines: list[Line] | None = None

    def show(self, view: View) -> None:
        """Show this view from now on."""
        self._view = view
        self._redraw()

    def on_resize(self) -> None:
        """Another size: another picture."""
        self._redraw()

    def _redraw(self) -> None:
        self._lines = None
        width, height = self.room
        if not width or not height:
            return
        lines = self._drawn()
        if self._scrolls:
            self.virtual_size = Size(width, len(lines))
        top = self.scroll_offset.y
        shown = lines[top : top + height]
        self.refresh_changed([*shown, *([[]] * (height - len(shown)))])

    def _drawn(self) -> list[Line]:
        if self._lines is None:
            width, height = self.room
            drawable = self._view is not None and width and height
            self._lines = self._draw(self._view, width, height) if drawable and self._view else []
        return self._lines

    def render_line(self, y: int) -> Strip:
        """One line of the picture, from where it is scrolled to."""
        lines, at = self._drawn(), y + self.scroll_offset.y
        return self.strip(lines[at] if at < len(lines) else [], self.room.width)
