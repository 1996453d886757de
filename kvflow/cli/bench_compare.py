"""`kvflow bench compare`: two results side by side."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from kvflow.bench.compare import Change, changes, differences, read
from kvflow.bench.figures import figure
from kvflow.bench.report.words import claimed
from kvflow.cli.console import err, out

SCHEMA_VERSION = 1


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
    out().print(_table(found))


def _as_dict(change: Change) -> dict[str, Any]:
    ratios = {name: figure(getattr(change, name)).model_dump() for name in ("run", "ttft")}
    return {**change._asdict(), **ratios}


def _table(found: Sequence[Change]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("setting", "arm", "run s before", "after", "run speed-up", "TTFT speed-up"):
        table.add_column(heading)
    for change in found:
        table.add_row(
            change.setting,
            change.arm,
            f"{change.before_s:.2f}",
            f"{change.after_s:.2f}",
            claimed(figure(change.run)),
            claimed(figure(change.ttft)),
        )
    return table
