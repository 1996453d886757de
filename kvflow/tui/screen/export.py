"""Files that the screens write: always new ones, in one folder of the user's."""

import csv
import io
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from platformdirs import user_state_path

from kvflow.errors import KvflowError
from kvflow.tui.rows import Row

FIELDS = (
    "id",
    "parent",
    "level",
    "state",
    "steps",
    "why",
    "agents",
    "tokens",
    "depth",
    "locks",
    "hits",
    "last_access",
    "gone",
)


def folder() -> Path:
    """Where files go."""
    return user_state_path("kvflow") / "top"


def new_path(into: Path, suffix: str, now: datetime) -> Path:
    """A file that is not there yet, named for the moment.

    Raises:
        KvflowError: the folder cannot be made.
    """
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KvflowError(f"cannot write into {into}", str(error)) from error
    stem = f"top-{now:%Y%m%d-%H%M%S}"
    path, number = into / f"{stem}{suffix}", 2
    while path.exists():
        path, number = into / f"{stem}-{number}{suffix}", number + 1
    return path


def write(path: Path, text: str) -> None:
    """Write a text.

    Raises:
        KvflowError: the file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise KvflowError(f"cannot write {path}", str(error)) from error


def as_csv(rows: Iterable[Row]) -> str:
    """The rows as they are shown, one node a line, under the names of FIELDS."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    for row in rows:
        node = row.node
        writer.writerow(
            (
                node.id,
                node.parent,
                row.level,
                node.state,
                node.steps,
                node.why,
                " ".join(node.agents),
                node.tokens,
                node.depth,
                node.locks,
                node.hits,
                f"{node.last_access:g}",
                int(row.ghost),
            )
        )
    return out.getvalue()
