"""What can be chosen for the screens of `kvflow top` before they are shown."""

from dataclasses import dataclass
from pathlib import Path

from kvflow.tui.filter import EVERYTHING, Filter
from kvflow.tui.rows import NATURAL, Sort


@dataclass(frozen=True, slots=True)
class ScreenOptions:
    """How the screens begin.

    Attributes:
        interval_s: seconds between two frames.
        filter: which nodes are shown; `filter.text` is what was typed.
        sort: of the tree.
        ascii: no characters beyond ASCII.
        record: a file to record to from the beginning.
    """

    interval_s: float = 1.0
    filter: Filter = EVERYTHING
    sort: Sort = NATURAL
    ascii: bool = False
    record: Path | None = None
