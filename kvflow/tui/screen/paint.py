"""From ink to Textual's styles: the one place where a meaning becomes a colour."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from kvflow.tui.screen.ink import Ink, Piece, fit, joined


class Inked(Widget):
    """A screen that has the inks for all that is painted on it.

    Textual styles each component class of each widget again whenever it styles the widget, so that
    inks of every panel's own were most of what a start and a change of the focus cost.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"ink--{ink}" for ink in Ink}

    def wear(self, classes: Mapping[str, bool]) -> None:
        """Change classes at once: for each change all that is on the screen is styled again.

        Args:
            classes: whether it is to have each of them; it keeps all others.
        """
        before = self.classes
        for name, wears in classes.items():
            self.set_class(wears, name, update=False)
        if self.classes != before:
            self.update_node_styles()


class Painted(Widget):
    """A widget that draws lines of pieces itself, through Textual's line API.

    It stands on a screen that is `Inked`.
    """

    def __init__(self, *, id: str | None = None, **other: Any) -> None:  # noqa: A002
        super().__init__(id=id, **other)
        self._styles_of: dict[tuple[Ink, str | None], Style] = {}
        self._looks: Sequence[object] = ()
        self._room: tuple[object, Size] | None = None

    def notify_style_update(self) -> None:
        """Another theme or another state: inks may look otherwise."""
        super().notify_style_update()
        self._styles_of.clear()
        self._room = None

    @property
    def room(self) -> Size:
        """What there is to draw on: without borders and scroll bars. Asked for each line."""
        of = (self.size, self.show_vertical_scrollbar, self.show_horizontal_scrollbar)
        if self._room is None or self._room[0] != of:
            self._room = of, self.scrollable_content_region.size
        return self._room[1]

    def refresh_changed(self, looks: Sequence[object]) -> None:
        """Paint again the lines that look different; painting is what a refresh costs most.

        Args:
            looks: one a line of the widget: equal for as long as the line looks the same.
        """
        before, self._looks = self._looks, looks
        if len(before) != len(looks):
            self.refresh()
            return
        width = self.room.width
        changed = [y for y, look in enumerate(looks) if look != before[y]]
        # Neighbours as one: each region is painted for itself.
        runs = groupby(enumerate(changed), key=lambda numbered: numbered[1] - numbered[0])
        regions = [Region(0, run[0][1], width, len(run)) for run in (list(run) for _, run in runs)]
        if regions:
            self.refresh(*regions)

    def strip(self, line: Iterable[Piece], width: int, component: str | None = None) -> Strip:
        """The line, exactly `width` cells wide.

        Args:
            line: what to draw.
            width: in cells.
            component: a `line--` component class whose style lies under the whole line.
        """
        pieces, below = fit(line, width), self._style(Ink.PLAIN, component)
        if not (below.reverse or below.underline):  # in these, blanks show their ink
            pieces = joined(pieces)
        segments = [Segment(piece.text, self._style(piece.ink, component)) for piece in pieces]
        return Strip(segments, width)

    def _style(self, ink: Ink, component: str | None) -> Style:
        """An ink on a kind of line. Looked up once: styles are what drawing spends its time on."""
        style = self._styles_of.get((ink, component))
        if style is None:
            style = self.rich_style
            if component is not None:
                line = self.get_component_rich_style(component)
                style += Style(
                    bgcolor=line.bgcolor,
                    bold=line.bold,
                    underline=line.underline,
                    reverse=line.reverse,
                )
            inked = self.screen.get_component_rich_style(f"ink--{ink}")
            # Not its background, which is the widget's own: it would hide the line's.
            style += Style(color=inked.color, bold=inked.bold or None, dim=inked.dim)
            self._styles_of[ink, component] = style
        return style
