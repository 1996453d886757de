"""What can be chosen for the screens of `kvflow top` before they are shown."""

from dataclasses import dataclass, field
from pathlib import Path

from kvflow.tui.config import Config, default_path
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
        panels: all that are shown beside the tree; None for those that there is room for.
        config: keys, and presets to choose from.
    """

    interval_s: float = 1.0
    filter: Filter = EVERYTHING
    sort: Sort = NATURAL
    ascii: bool = False
    record: Path | None = None
    panels: tuple[str, ...] | None = None
    config: Config = field(default_factory=lambda: Config(default_path()))
