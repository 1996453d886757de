"""`kvflow bench compare`: two results side by side."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kvflow.bench.compare import Change, changes, differences, read
from kvflow.bench.figures import figure
from kvflow.bench.report.terminal import put
from kvflow.bench.report.words import claimed
from kvflow.bench.stats import Ratio
from kvflow.cli.console import err, out

SCHEMA_VERSION = 1
_OF_TIMES = (
    "What the machine did between two benches is in these times, so nothing is claimed of them."
)
_OF_SPEEDUPS = (
    "It is not in speed-ups over an arm of the same repeats. How many times as large these have "
    "become, 95 % interval:"
)
_NO_SPEEDUPS = "No two arms were measured in both results, so no speed-ups can be compared."


def show(before: Path, after: Path, *, as_json: bool) -> None:
    """Print how the second result differs from the first.

    Raises:
        UsageError: one of them is no result, or they have nothing in common.
    """
    first, second = read(before), read(after)
    found, unlike = changes(first, second), differences(first, second)
    if as_json:
        body = {
            "schema_version": SCHEMA_VERSION,
            "differences": unlike,
            "changes": [_as_dict(change) for change in found],
        }
        sys.stdout.write(f"{json.dumps(body, indent=1)}\n")
        return
    for difference in unlike:
        err().print(f"not alike: {difference}", markup=False)
    for part in _parts(found):
        put(out(), part)


def _parts(found: Sequence[Change]) -> Iterator[RenderableType]:
    compared = [change for change in found if change.arm != change.base]
    yield _times(found)
    yield Text(f"\n{_OF_TIMES}")
    if compared:
        yield Text(_OF_SPEEDUPS)
        yield _speedups(compared)
    else:
        yield Text(_NO_SPEEDUPS)


def _as_dict(change: Change) -> dict[str, Any]:
    ratios = {"run": change.run, "ttft": change.ttft}
    return {
        **change._asdict(),
        **{name: ratio and figure(ratio).model_dump() for name, ratio in ratios.items()},
    }


def _times(found: Sequence[Change]) -> Table:
    table = _with("setting", "arm", "run s before", "after", "times as fast")
    for change in found:
        numbers = (change.before_s, change.after_s, change.times)
        table.add_row(change.setting, change.arm, *(f"{number:.2f}" for number in numbers))
    return table


def _speedups(found: Sequence[Change]) -> Table:
    table = _with("setting", "speed-up", "whole run", "first token")
    for change in found:
        ratios = (_told(change.run), _told(change.ttft))
        table.add_row(change.setting, f"{change.arm}/{change.base}", *ratios)
    return table


def _with(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading)
    return table


def _told(ratio: Ratio | None) -> str:
    return "-" if ratio is None else claimed(figure(ratio))
