"""A table of any length, of which only what is on the screen is ever drawn."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kvflow.tui.screen.columns import Placed
from kvflow.tui.screen.ink import Ink, Line, Piece
from kvflow.tui.screen.paint import Painted

_CACHED_STRIPS = 2048


class Listing(Painted, ScrollView, can_focus=True):
    """Rows under a header that stays in place, with a cursor.

    A subclass says how many rows there are, what stands in each, and of which version it is: a
    row is drawn again only when its version or the width changes.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False, id="list.up"),
        Binding("down,j", "move(1)", "down", show=False, id="list.down"),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False, id="list.page_up"),
        Binding("pagedown,ctrl+f", "page(1)", "page down", show=False, id="list.page_down"),
        Binding("home,g", "first", "first", show=False, id="list.first"),
        Binding("end,G", "last", "last", show=False, id="list.last"),
        Binding("enter,d", "choose", "details", key_display="enter", id="list.choose"),
    ]

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "line--cursor",
        "line--cursor-blurred",
        "line--changed",
    }

    cursor = reactive(0, repaint=False)
    """Index of the row that is chosen."""

    class Chosen(Message):
        """The person asked for the details of the row under the cursor."""

        def __init__(self, listing: "Listing") -> None:
            super().__init__()
            self.listing = listing

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self._strips: LRUCache[tuple[object, ...], Strip] = LRUCache(_CACHED_STRIPS)

    # What a subclass says

    def row_count(self) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def row_version(self, index: int) -> object:
        """Hashable; equal for as long as the row looks the same."""
        raise NotImplementedError

    def row_line(self, index: int, placed: list[Placed]) -> Line:
        """What stands in the row."""
        raise NotImplementedError

    def row_component(self, index: int) -> str | None:
        """A `line--` component class for the row, if it looks unlike others."""
        del index
        return None

    def header_line(self, placed: list[Placed]) -> Line:
        """What stands above the rows."""
        raise NotImplementedError

    def empty(self) -> str:
        """What is said while there are no rows."""
        raise NotImplementedError

    def placed(self, width: int) -> list[Placed]:
        """The columns for a width in cells."""
        raise NotImplementedError

    # What it does with it

    def rows_changed(self) -> None:
        """Draw anew what looks different now."""
        count = self.row_count()
        self.virtual_size = Size(self.room.width, max(count, 1) + 1)
        self.cursor = min(self.cursor, max(count - 1, 0))
        self._refresh_rows()

    def _refresh_rows(self) -> None:
        width, height = self.room
        header = self.header_line(self.placed(width)) if width else []
        self.refresh_changed([header, *(self._look_of(y, width) for y in range(1, height))])

    def _look_of(self, y: int, width: int) -> tuple[object, ...] | None:
        """What the row at a height is drawn from; None below the last one."""
        index = y - 1 + self.scroll_offset.y
        if index >= self.row_count():
            return None
        return self.row_version(index), width, self._component(index)

    def render_line(self, y: int) -> Strip:
        """The header, then the rows from where the table is scrolled to."""
        width = self.room.width
        if y == 0:
            return self.strip(self.header_line(self.placed(width)), width)
        look = self._look_of(y, width)
        if look is None:
            said = y == 1 and not self.row_count()
            return self.strip([Piece(self.empty(), Ink.MUTED)] if said else [], width)
        strip = self._strips.get(look)
        if strip is None:
            index = y - 1 + self.scroll_offset.y
            line = self.row_line(index, self.placed(width))
            strip = self._strips[look] = self.strip(line, width, self._component(index))
        return strip

    def _component(self, index: int) -> str | None:
        if index != self.cursor:
            return self.row_component(index)
        return "line--cursor" if self.has_focus else "line--cursor-blurred"

    def notify_style_update(self) -> None:
        """The theme changed, so what was drawn is no longer true."""
        super().notify_style_update()
        self._strips.clear()

    def on_resize(self) -> None:
        """Another width: other columns. Another height must not hide the cursor."""
        self.rows_changed()
        self.call_after_refresh(self.scroll_to_cursor)

    def on_focus(self) -> None:
        """The cursor looks otherwise with the focus."""
        self._refresh_rows()

    def on_blur(self) -> None:
        """The cursor looks otherwise without the focus."""
        self._refresh_rows()

    def scroll_to_cursor(self) -> None:
        """Scroll as little as brings the cursor's row on the screen."""
        rows_shown = self.room.height - 1
        top = self.scroll_offset.y
        if rows_shown > 0 and not top <= self.cursor < top + rows_shown:
            down = self.cursor - rows_shown + 1
            self.scroll_to(y=self.cursor if self.cursor < top else down, animate=False)

    def _go(self, index: int) -> None:
        self.cursor = min(max(index, 0), max(self.row_count() - 1, 0))
        self.scroll_to_cursor()
        self._refresh_rows()

    def action_move(self, by: int) -> None:
        """Move the cursor by so many rows."""
        self._go(self.cursor + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by so many screens."""
        self._go(self.cursor + by * max(self.room.height - 2, 1))

    def action_first(self) -> None:
        """Move the cursor to the first row."""
        self._go(0)

    def action_last(self) -> None:
        """Move the cursor to the last row."""
        self._go(self.row_count() - 1)

    def action_choose(self) -> None:
        """Ask for the details of the row under the cursor."""
        if self.row_count():
            self.post_message(self.Chosen(self))

    async def on_click(self, event: events.Click) -> None:
        """A click moves the cursor; a second one on the same spot asks for details."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y < 1:
            return
        index = offset.y - 1 + self.scroll_offset.y
        if index >= self.row_count():
            return
        self._go(index)
        if event.chain == 2:
            self.action_choose()
