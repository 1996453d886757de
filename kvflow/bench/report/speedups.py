"""The picture of speed-ups over the baseline, setting by setting. Needs matplotlib."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kvflow.bench.report import words
from kvflow.bench.report.ink import (
    FAINT,
    FIRST_TOKEN,
    ROW_IN,
    RUN,
    WIDE,
    Rows,
    above_note,
    finished,
    grouped,
    label,
)
from kvflow.bench.result import Document, SpeedupFigure
from kvflow.bench.stats import Claim

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS = (("whole run", "run", RUN), ("first token", "ttft", FIRST_TOKEN))
_MARGIN = 1.5  # of a panel, beyond the outermost mean
_CLAIMED = (Claim.FASTER, Claim.SLOWER)


class Compared(NamedTuple):
    """An arm's row.

    Attributes:
        arm: its name.
        ratios: over the baseline by metric, as `words.over_baseline` has them.
        paper: the paper's figure for whole runs, if this is the arm that stands for its system.
    """

    arm: str
    ratios: dict[str, SpeedupFigure]
    paper: float | None


def compared(document: Document) -> list[Compared]:
    """Every arm that can be compared with the setting's baseline."""
    found = []
    for arm in document.arms:
        ratios = {
            metric: ratio
            for _, metric, _ in _PANELS
            if (ratio := words.over_baseline(document, arm, metric)) is not None
        }
        if len(ratios) == len(_PANELS):
            paper = words.of_paper(document) if arm == words.papers_arm(document) else None
            found.append(Compared(arm, ratios, paper))
    return found


def draw(make: Any, documents: Sequence[Document]) -> "Figure":
    """A panel of whole runs and one of first tokens; a group of rows for each setting."""
    groups = [(document.setup["setting"], compared(document)) for document in documents]
    rows = grouped([(setting, [row.arm for row in found]) for setting, found in groups])
    marks = [row for _, found in groups for row in found]
    figure = make(figsize=(WIDE, 1.4 + ROW_IN * rows.height))
    panels = figure.subplots(1, 2, sharey=True)
    for number, (axes, panel) in enumerate(zip(panels, _PANELS, strict=True)):
        _panel(axes, panel, rows, marks)
        label(axes, rows, with_headings=number == 0)
    bases = " or ".join(words.bases_of(documents))
    figure.supxlabel(f"times as fast as {bases}; lines are 95 % intervals", fontsize=9)
    figure.legend(
        handles=_legend(any(row.paper for row in marks)), loc="lower center",
        bbox_to_anchor=(0.5, above_note(figure)), ncols=3, frameon=False, fontsize=8,
    )  # fmt: skip
    return finished(figure, words.note(documents))


def _panel(
    axes: "Axes", panel: tuple[str, str, str], rows: Rows, marks: Sequence[Compared]
) -> None:
    title, metric, colour = panel
    means = [1.0]
    for (at, _), row in zip(rows.labels, marks, strict=True):
        ratio = row.ratios[metric]
        low, high = ratio.low or ratio.mean, ratio.high or ratio.mean
        axes.plot([low, high], [at, at], color=colour, linewidth=2.5, alpha=0.45)
        face = colour if ratio.claim in _CLAIMED else "white"
        axes.plot(ratio.mean, at, "o", color=colour, markerfacecolor=face, markersize=5)
        means.append(ratio.mean)
        if metric == "run" and row.paper is not None:
            axes.plot(row.paper, at, "D", color="black", markerfacecolor="none", markersize=5)
            means.append(row.paper)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlim(min(means) / _MARGIN, max(means) * _MARGIN)
    _plain_ticks(axes)
    axes.set_title(title, fontsize=10)
    axes.grid(axis="x", color="#DDDDDD")
    axes.set_axisbelow(True)


def _plain_ticks(axes: "Axes") -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.xaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelsize=7.5)


def _legend(with_paper: bool) -> list[Any]:
    from matplotlib.lines import Line2D

    def mark(shape: str, face: str, text: str) -> Line2D:
        return Line2D(
            [], [], linestyle="", marker=shape, color="black" if shape == "D" else FAINT,
            markerfacecolor=face, markersize=5, label=text,
        )  # fmt: skip

    entries = [
        mark("o", FAINT, "difference claimed"),
        mark("o", "white", "no difference could be shown"),
    ]
    return [*entries, mark("D", "none", "the paper's KVFlow")] if with_paper else entries
