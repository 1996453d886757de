"""Pictures of a result, as SVG. Needs matplotlib, which is an optional part."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvflow.bench.arms import baseline
from kvflow.bench.report import timeline, words
from kvflow.bench.report.ink import FIRST_TOKEN, RUN, WHERE, WIDE, finished
from kvflow.bench.result import Document, SpeedupFigure
from kvflow.bench.session import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS = (("whole run", "run", "o", RUN), ("first token", "ttft", "s", FIRST_TOKEN))


def write(folder: Path, documents: Sequence[Document], measured: Sequence[Measured]) -> list[str]:
    """Draw everything into a folder.

    Returns:
        The names of the files; none without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return []
    names = []
    if any(_compared(document) for document in documents):
        names.append(_save(_speedups(Figure, documents), folder / "speedup.svg"))
    names.append(_save(_hits(Figure, documents), folder / "hits.svg"))
    for number, one in enumerate(measured, 1):
        if any(trial.whole for trial in one.trials):
            suffix = f"-{number}" if len(measured) > 1 else ""
            names.append(_save(timeline.draw(Figure, one), folder / f"timeline{suffix}.svg"))
    return names


def _save(figure: "Figure", path: Path) -> str:
    from matplotlib import rc_context

    # Without date and with a fixed salt equal results give equal files.
    with rc_context({"svg.hashsalt": "kvflow"}):
        figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
    return path.name


def _note(documents: Sequence[Document]) -> str:
    names = ", ".join(dict.fromkeys(document.recipe for document in documents))
    label = documents[0].setup.get("label")
    return f"{names}; {label}" if label else names


def _compared(document: Document) -> list[tuple[str, SpeedupFigure, SpeedupFigure]]:
    """Every arm against the baseline: (pair, of runs, of the first token)."""
    base = baseline(list(document.arms))
    found = []
    for arm in document.arms:
        for pair, turn in ((f"{arm}/{base}", False), (f"{base}/{arm}", True)):
            run, ttft = document.speedup(pair), document.speedup(pair, "ttft")
            if run is not None and ttft is not None:
                both = (words.inverted(run), words.inverted(ttft)) if turn else (run, ttft)
                found.append((f"{arm} / {base}", *both))
    return found


def _speedups(make: Any, documents: Sequence[Document]) -> "Figure":
    """Speed-ups over the baseline with their intervals, setting by setting."""
    rows = [
        (f"{document.setup['setting']}: {pair}" if len(documents) > 1 else pair, run, ttft)
        for document in documents
        for pair, run, ttft in _compared(document)
    ]
    figure = make(figsize=(WIDE, 1.6 + 0.42 * len(rows)))
    axes: Axes = figure.subplots()
    for at, (_, *ratios) in enumerate(rows):
        for offset, ratio, (label, _, mark, colour) in zip(
            (-0.14, 0.14), ratios, _MARKS, strict=True
        ):
            low, high = ratio.low or ratio.mean, ratio.high or ratio.mean
            axes.plot([low, high], [at + offset] * 2, color=colour, linewidth=2.5, alpha=0.45)
            axes.plot(ratio.mean, at + offset, mark, color=colour, label=label if at == 0 else None)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xscale("log")
    _plain_ticks(axes)
    axes.set_xlabel("times as fast (right of 1: faster); lines are 95 % intervals")
    axes.grid(axis="x", color="#DDDDDD")
    axes.set_axisbelow(True)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return finished(figure, _note(documents))


def _plain_ticks(axes: "Axes") -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.xaxis.set_major_locator(LogLocator(subs=(1, 1.2, 1.5, 2, 3, 5, 7)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _hits(make: Any, documents: Sequence[Document]) -> "Figure":
    """Where the reusable tokens were found, arm by arm."""
    rows = [
        (f"{document.setup['setting']}: {name}" if len(documents) > 1 else name, words.shares(arm))
        for document in documents
        for name, arm in document.arms.items()
        if arm.reusable_tokens
    ]
    figure = make(figsize=(WIDE, 1.4 + 0.34 * len(rows)))
    axes: Axes = figure.subplots()
    left = [0.0] * len(rows)
    for tier, (colour, label) in enumerate(WHERE):
        widths = [100 * shares[tier] for _, shares in rows]
        axes.barh(range(len(rows)), widths, left=left, color=colour, label=label, height=0.7)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the prompt tokens that could be found in the cache")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    return finished(figure, _note(documents))
