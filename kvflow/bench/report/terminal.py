"""The result on a terminal: words first, then a table with bars, then what may be claimed."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from kvflow.bench.report import words
from kvflow.bench.result import Document

_BAR = 16  # columns
_EIGHTHS = " ▏▎▍▌▋▊▉"
_NO_EDGE = 1000  # columns; what is piped on is not squeezed


@dataclass(frozen=True, slots=True)
class _Unsqueezed:
    """As wide as it wants to be, whatever the console takes itself to be."""

    part: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self.part, options.update(max_width=_NO_EDGE))


@dataclass(frozen=True, slots=True)
class _Bar:
    """A bar of that share of its column, in characters that the console has."""

    share: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(bar(self.share, plain=options.ascii_only))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(_BAR, _BAR)


def show(console: Console, documents: list[Document]) -> None:
    """Print every setting."""
    for number, document in enumerate(documents):
        if number:
            console.print()
        for part in parts(document):
            put(console, part)


def put(console: Console, part: RenderableType) -> None:
    """Print something that only a terminal squeezes."""
    if console.is_terminal:
        console.print(part, markup=False, soft_wrap=False)
    else:
        console.print(_Unsqueezed(part), soft_wrap=False, crop=False)


def parts(document: Document) -> Iterator[RenderableType]:
    """What is shown of one setting, from top to bottom."""
    yield Text(words.heading(document), style="bold")
    yield Text(f"{words.conditions(document)}\n")
    yield Text(f"{document.verdict.headline}\n", style="bold")
    yield _verdict(document)
    yield Text()
    yield _arms(document)
    base = words.base_of(document)
    if base is not None and len(document.arms) > 1:
        yield Text(f"\ntimes as fast as {base}, 95 % interval:")
        yield _speedups(document, base)
    for line in (*words.goodput(document), *words.plain(document), *words.paper(document)):
        yield Text(line)


def _verdict(document: Document) -> Table:
    """Reasons and advice, each indented as one block."""
    grid = Table.grid(padding=(0, 2))
    for reason in document.verdict.reasons:
        grid.add_row("why", Text(reason))
    for advice in document.verdict.advice:
        grid.add_row("try", Text(advice))
    return grid


def _arms(document: Document) -> Table:
    table = Table(box=None, pad_edge=False)
    arm, run, *rest = words.COLUMNS[: -words.SPEEDUPS]
    table.add_column(arm, no_wrap=True)
    table.add_column(run, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for heading in rest:
        table.add_column(heading, justify="right", no_wrap=True)
    means = {name: arm.run_s.mean for name, arm in document.arms.items() if arm.run_s}
    for name in document.arms:
        share = means.get(name, 0.0) / max(means.values(), default=1.0)
        first, second, *others = words.cells(document, name)[: -words.SPEEDUPS]
        table.add_row(first, second, _Bar(share), *others)
    return table


def _speedups(document: Document, base: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("arm", "whole run", "first token"):
        table.add_column(heading, no_wrap=True)
    for name in document.arms:
        if name != base:
            table.add_row(name, *words.cells(document, name)[-words.SPEEDUPS :])
    return table


def bar(share: float, *, plain: bool = False) -> str:
    """A bar of that share of its column, to an eighth of a character; of whole ones if `plain`."""
    if plain:
        return ("#" * round(share * _BAR)).ljust(_BAR)
    eighths = round(share * _BAR * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(_BAR)
