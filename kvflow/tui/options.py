"""What can be chosen for the screens of `kvflow top` before they are shown."""

from dataclasses import dataclass

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
    """

    interval_s: float = 1.0
    filter: Filter = EVERYTHING
    sort: Sort = NATURAL
    ascii: bool = False
