"""Pictures of a result, as SVG. Needs matplotlib, which is an optional part."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvflow.bench.report import speedups, timeline, words
from kvflow.bench.report.ink import ROW_IN, WHERE, WIDE, finished, grouped, label
from kvflow.bench.result import Document
from kvflow.bench.session import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def write(folder: Path, documents: Sequence[Document], measured: Sequence[Measured]) -> list[str]:
    """Draw everything into a folder.

    Args:
        folder: to draw into.
        documents: at least one.
        measured: what each of them was made of, in the same order.

    Returns:
        The names of the files; none without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return []
    names = []
    if any(speedups.compared(document) for document in documents):
        names.append(_save(speedups.draw(Figure, documents), folder / "speedup.svg"))
    if any(arm.reusable_tokens for document in documents for arm in document.arms.values()):
        names.append(_save(_hits(Figure, documents), folder / "hits.svg"))
    for number, one in enumerate(measured, 1):
        if any(trial.whole for trial in one.trials):
            name = timeline_of(number, len(measured))
            names.append(_save(timeline.draw(Figure, one), folder / name))
    return names


def timeline_of(number: int, settings: int) -> str:
    """The name of a setting's timeline, counted from 1."""
    return f"timeline-{number}.svg" if settings > 1 else "timeline.svg"


def _save(figure: "Figure", path: Path) -> str:
    from matplotlib import rc_context

    # Without date and with a fixed salt equal results give equal files.
    with rc_context({"svg.hashsalt": "kvflow"}):
        figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
    return path.name


def _hits(make: Any, documents: Sequence[Document]) -> "Figure":
    """Where the reusable tokens were found, arm by arm."""
    groups = [
        (
            document.setup["setting"],
            {name: words.shares(arm) for name, arm in document.arms.items() if arm.reusable_tokens},
        )
        for document in documents
    ]
    rows = grouped([(setting, list(arms)) for setting, arms in groups])
    shares = [found for _, arms in groups for found in arms.values()]
    places = [at for at, _ in rows.labels]
    figure = make(figsize=(WIDE, 1.2 + ROW_IN * rows.height))
    axes: Axes = figure.subplots()
    left = [0.0] * len(shares)
    for tier, (colour, name) in enumerate(WHERE):
        widths = [100 * found[tier] for found in shares]
        axes.barh(places, widths, left=left, color=colour, label=name, height=0.7)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    label(axes, rows)
    axes.set_xlim(0, 100)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel("% of the prompt tokens that could be found in the cache", fontsize=9)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=8)
    return finished(figure, words.note(documents))
