"""The result on a terminal: words first, then a table with bars."""

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from kvflow.bench.report import words
from kvflow.bench.result import Document

_BAR = 16  # columns
_EIGHTHS = " ▏▎▍▌▋▊▉"
_NO_EDGE = 1000  # columns; what is piped on is not squeezed


def show(console: Console, documents: list[Document]) -> None:
    """Print every setting."""
    for number, document in enumerate(documents):
        if number:
            console.print()
        for part in parts(document, console):
            console.print(part, markup=False)


def parts(document: Document, console: Console) -> Iterator[RenderableType]:
    """What is shown of one setting, from top to bottom."""
    yield Text(words.heading(document), style="bold")
    yield words.conditions(document)
    yield ""
    yield Text(document.verdict.headline, style="bold")
    for reason in document.verdict.reasons:
        yield f"  why  {reason}"
    for advice in document.verdict.advice:
        yield f"  try  {advice}"
    yield ""
    yield _table(document, console)
    yield from words.paper(document)


def _table(document: Document, console: Console) -> Table:
    table = Table(box=None, pad_edge=False)
    arm, run, *rest = words.COLUMNS
    table.add_column(arm, no_wrap=True)
    table.add_column(run, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for heading in rest:
        table.add_column(heading, justify="left" if "speed-up" in heading else "right")
    means = {name: arm.run_s.mean for name, arm in document.arms.items() if arm.run_s}
    for name in document.arms:
        share = means.get(name, 0.0) / max(means.values(), default=1.0)
        first, second, *others = words.cells(document, name)
        table.add_row(first, second, bar(share), *others)
    if not console.is_terminal:
        boundless = console.options.update(width=_NO_EDGE)
        table.width = console.measure(table, options=boundless).maximum
    return table


def bar(share: float) -> str:
    """A bar of that share of its column, to an eighth of a character."""
    eighths = round(share * _BAR * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(_BAR)
