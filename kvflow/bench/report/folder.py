"""The results folder: everything that is needed to judge a bench later, or to compare it."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from kvflow.bench.report import plots, tables
from kvflow.bench.result import Document, Result, SuiteDocument, settings_of
from kvflow.bench.session import Measured
from kvflow.bench.watched import watched_call, watched_runs
from kvflow.errors import KvflowError, UsageError

SUMMARY = "summary.json"


class Pictures(NamedTuple):
    """What was drawn.

    Attributes:
        names: of the files; none without matplotlib.
        failure: why they could not be drawn, in a line; empty if nothing went wrong.
    """

    names: Sequence[str]
    failure: str


def make(path: Path) -> Path:
    """Make an empty folder for results.

    Raises:
        UsageError: something is there already, or it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        taken = any(path.iterdir())
    except OSError as error:
        raise UsageError(f"--out {path} cannot be used", error.strerror or str(error)) from error
    if taken:
        raise UsageError(f"--out {path} is not empty", hint="name a folder that is not there yet")
    return path


def fill(folder: Path, result: Result, measured: Sequence[Measured]) -> Pictures:
    """Write everything.

    Raises:
        KvflowError: it cannot be written, or not all of it.
    """
    try:
        return _fill(folder, result, measured)
    except OSError as error:
        why = error.strerror or str(error)
        raise KvflowError(
            f"{folder} cannot be written", why, "--out names another folder"
        ) from error


def _fill(folder: Path, result: Result, measured: Sequence[Measured]) -> Pictures:
    documents = settings_of(result)
    _write_json(folder / "environment.json", result.environment)
    _write_json(folder / "config.json", [document.setup for document in documents])
    (folder / SUMMARY).write_text(_as_text(result), encoding="utf-8")
    with (folder / "requests.jsonl").open("w", encoding="utf-8") as file:
        for line in requests(measured):
            file.write(f"{json.dumps(line)}\n")
    (folder / "timeline.json").write_text(_as_text(watched_runs(measured)), encoding="utf-8")
    _write_report(folder, result, [])  # drawing takes long enough to be interrupted
    pictures = _draw(folder, documents, [one for one in measured if one.trials])
    _write_report(folder, result, pictures.names)
    return pictures


def _write_report(folder: Path, result: Result, pictures: Sequence[str]) -> None:
    text = report(result, settings_of(result), pictures)
    (folder / "report.md").write_text(text, encoding="utf-8")


def _draw(folder: Path, documents: Sequence[Document], measured: Sequence[Measured]) -> Pictures:
    try:
        return Pictures(plots.write(folder, documents, measured), "")
    except Exception as error:  # noqa: BLE001
        # Fonts, backends and versions of matplotlib fail in ways of their own.
        return Pictures([], f"{type(error).__name__}: {' '.join(str(error).split())}")


def report(result: Result, documents: Sequence[Document], pictures: Sequence[str]) -> str:
    """The report in Markdown, which shows the pictures beside it, timelines in their settings."""
    if isinstance(result, SuiteDocument):
        lines = [f"# kvflow bench: {result.suite}", "", result.about, ""]
    else:
        lines = [f"# kvflow bench: {result.recipe}", ""]
    lines += ["```console", f"$ {documents[0].setup['command']}", "```", ""]
    known = {name: value for name, value in result.environment.items() if value is not None}
    who = "The client ran" if documents[0].setup.get("environment_of") == "client" else "Ran"
    lines += [f"{who} on {', '.join(f'{name} {value}' for name, value in known.items())}.", ""]
    lines += tables.overview(documents)
    timelines = [plots.timeline_of(number + 1, len(documents)) for number in range(len(documents))]
    for name in pictures:
        if name not in timelines:
            lines += [f"![{Path(name).stem}]({name})", ""]
    lines += [
        tables.section(document, name if name in pictures else None)
        for document, name in zip(documents, timelines, strict=True)
    ]
    return "\n".join(lines)


def requests(measured: Sequence[Measured]) -> Iterator[dict[str, Any]]:
    """Every measured call, those of turns that failed among them; no text of any answer."""
    for one in measured:
        for trial in one.trials:
            for call in trial.calls:
                yield {
                    "setting": one.setting.name,
                    "arm": trial.arm,
                    "repeat": trial.repeat,
                    **watched_call(call).model_dump(),
                }


def _as_text(part: BaseModel) -> str:
    return f"{part.model_dump_json(indent=1)}\n"


def _write_json(path: Path, value: Any) -> None:
    path.write_text(f"{json.dumps(value, indent=1)}\n", encoding="utf-8")
