"""Colours and manners that the pictures share. Needs matplotlib, once something is drawn."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which can be told apart by everybody.
DEVICE, HOST, ANEW, STALL = "#009E73", "#E69F00", "#56B4E9", "#D55E00"
FAINT = "#777777"
RUN, FIRST_TOKEN = "#0072B2", "#CC79A7"
WHERE = ((DEVICE, "on the device"), (HOST, "loaded from the host"), (ANEW, "computed anew"))
WIDE = 8.0
"""Inches."""


def patch(colour: str, label: str) -> Any:
    """A legend's entry for an area."""
    from matplotlib.patches import Patch

    return Patch(color=colour, label=label)


def finished(figure: "Figure", note: str) -> "Figure":
    """Without what frames and says nothing; with a note that stays if the picture is passed on."""
    for axes in figure.axes:
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.text(1, 1, note, ha="right", va="bottom", fontsize=6.5, color=FAINT)
    return figure
