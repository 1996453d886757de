"""Colours, rows and manners that the pictures share. Needs matplotlib, once something is drawn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which can be told apart by everybody.
DEVICE, HOST, ANEW, STALL = "#009E73", "#E69F00", "#56B4E9", "#D55E00"
FAINT = "#777777"
RUN, FIRST_TOKEN = "#0072B2", "#CC79A7"
WHERE = ((DEVICE, "on the device"), (HOST, "loaded from the host"), (ANEW, "computed anew"))
WIDE = 8.0
"""Inches."""
ROW_IN = 0.2
"""Of a row, likewise."""
_NOTE_IN = 0.15
_BAND = "#EEEEEE"


def patch(colour: str, label: str) -> Any:
    """A legend's entry for an area."""
    from matplotlib.patches import Patch

    return Patch(color=colour, label=label)


def above_note(figure: "Figure") -> float:
    """Where a legend of the whole figure begins, as a share of its height."""
    return 1 + _NOTE_IN / float(figure.get_figheight())


def finished(figure: "Figure", note: str) -> "Figure":
    """Without what frames and says nothing; with a note that stays if the picture is passed on."""
    for axes in figure.axes:
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.text(1, 1, note, ha="right", va="bottom", fontsize=6.5, color=FAINT)
    return figure


class Rows(NamedTuple):
    """Where rows stand, from the top downwards.

    Attributes:
        labels: of each row: (place, text).
        headings: of each group, likewise; none of a single group.
        height: of all, in rows.
    """

    labels: Sequence[tuple[int, str]]
    headings: Sequence[tuple[int, str]]
    height: int


def grouped(groups: Sequence[tuple[str, Sequence[str]]]) -> Rows:
    """Places for the rows of some groups, each a heading and the texts of its rows."""
    labels: list[tuple[int, str]] = []
    headings: list[tuple[int, str]] = []
    at = 0
    for heading, texts in groups:
        if len(groups) > 1:
            headings.append((at, heading))
            at += 1
        labels += enumerate(texts, at)
        at += len(texts)
    return Rows(labels, headings, at)


def label(axes: "Axes", rows: Rows, *, with_headings: bool = True) -> None:
    """Name rows at the left edge of a panel, and groups on a band across it."""
    axes.set_yticks([at for at, _ in rows.labels], [text for _, text in rows.labels], fontsize=7.5)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(rows.height - 0.4, -0.6)
    for at, text in rows.headings:
        axes.axhspan(at - 0.5, at + 0.5, color=_BAND, zorder=3)
        if with_headings:
            axes.text(
                0.01, at, text, transform=axes.get_yaxis_transform(), va="center", fontsize=8,
                zorder=4,
            )  # fmt: skip
