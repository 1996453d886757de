"""The line in which a filter is typed: each change is tried at once, and errors are shown."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Label

from kvflow.tui.filter import Filter, FilterError, parse


class FilterBar(Vertical):
    """Hidden until it is asked for. What is understood takes effect while it is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "cancel", show=False, id="filter.cancel")
    ]

    class Changed(Message):
        """Another filter holds."""

        def __init__(self, wanted: Filter) -> None:
            super().__init__()
            self.wanted = wanted

    class Closed(Message):
        """Typing has come to an end."""

    def __init__(self, wanted: Filter, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.wanted = wanted
        self._before = wanted
        self.display = False

    def compose(self) -> ComposeResult:
        """The line, and below it what is wrong with it."""
        line = Input(
            self.wanted.text,
            placeholder="state:host agent:planner steps<3 tokens>1k locked !spent",
            select_on_focus=False,
            compact=True,
        )
        line.cursor_blink = False  # over a slow link each blink is a repaint
        yield line
        yield Label("", id="filter-error", markup=False)

    def open(self) -> None:
        """Begin to type; what holds now is where it begins."""
        self._before = self.wanted
        self.display = True
        self.query_one(Input).focus()

    def take(self, wanted: Filter) -> None:
        """Let another filter hold, as if it had been typed."""
        self.query_one(Input).value = wanted.text

    def on_input_changed(self, event: Input.Changed) -> None:
        """Try what is typed so far; while it makes no sense, what held before goes on to hold."""
        event.stop()
        label = self.query_one("#filter-error", Label)
        try:
            wanted = parse(event.value)
        except FilterError as error:
            label.update(f"{error.what}: {error.why}{f' ({error.hint})' if error.hint else ''}")
            label.display = True
            return
        label.display = False
        if wanted.text != self.wanted.text:
            self.wanted = wanted
            self.post_message(self.Changed(wanted))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Done: what is understood stays, what is not is dropped."""
        event.stop()
        self.query_one(Input).value = self.wanted.text
        self._close()

    def action_cancel(self) -> None:
        """Back to the filter that held before."""
        self.query_one(Input).value = self._before.text
        self._close()

    def _close(self) -> None:
        self.display = False
        self.post_message(self.Closed())
