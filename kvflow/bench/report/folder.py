"""The results folder: everything that is needed to judge a bench later, or to compare it."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kvflow.bench.report import plots, tables
from kvflow.bench.result import Document, Result, SuiteDocument, settings_of
from kvflow.bench.session import Measured
from kvflow.client.records import CallRecord
from kvflow.errors import UsageError

SUMMARY = "summary.json"


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


def fill(folder: Path, result: Result, measured: Sequence[Measured]) -> list[str]:
    """Write everything.

    Returns:
        The names of the pictures; none without matplotlib.
    """
    documents = settings_of(result)
    _write_json(folder / "environment.json", result.environment)
    _write_json(folder / "config.json", [document.setup for document in documents])
    (folder / SUMMARY).write_text(f"{result.model_dump_json(indent=1)}\n", encoding="utf-8")
    with (folder / "requests.jsonl").open("w", encoding="utf-8") as file:
        for line in requests(measured):
            file.write(f"{json.dumps(line)}\n")
    _write_json(folder / "timeline.json", list(traces(measured)))
    pictures = plots.write(folder, documents, measured) if documents else []
    text = report(result, documents, pictures)
    (folder / "report.md").write_text(text, encoding="utf-8")
    return pictures


def report(result: Result, documents: Sequence[Document], pictures: Sequence[str]) -> str:
    """The report in Markdown, which shows the pictures beside it."""
    if isinstance(result, SuiteDocument):
        lines = [f"# kvflow bench: {result.suite}", "", result.about, ""]
    else:
        lines = [f"# kvflow bench: {result.recipe}", ""]
    if documents:
        lines += ["```console", f"$ {documents[0].setup['command']}", "```", ""]
    known = {name: value for name, value in result.environment.items() if value is not None}
    lines += ["Ran on " + ", ".join(f"{name} {value}" for name, value in known.items()) + ".", ""]
    lines += [f"![{Path(name).stem}]({name})" for name in pictures]
    return "\n".join([*lines, "", tables.as_markdown(documents)])


def requests(measured: Sequence[Measured]) -> Iterator[dict[str, Any]]:
    """Every measured call, those of turns that failed among them; no text of any answer."""
    for one in measured:
        for trial in one.trials:
            for call in trial.calls:
                yield {
                    "setting": one.setting.name,
                    "arm": trial.arm,
                    "repeat": trial.repeat,
                    **_call(call),
                }


def traces(measured: Sequence[Measured]) -> Iterator[dict[str, Any]]:
    """The run of each arm that was watched closely."""
    for one in measured:
        for trial in one.trials:
            if trial.trace is not None:
                yield {
                    "setting": one.setting.name,
                    "arm": trial.arm,
                    "calls": [_call(call) for call in trial.trace.calls],
                    "looks": [look._asdict() for look in trial.trace.looks],
                }


def _call(call: CallRecord) -> dict[str, Any]:
    answer = call.answer
    return {
        "run": call.run,
        "call": call.call.id,
        "agent": call.call.agent,
        "state": call.state.value,
        "started_s": call.started_s,
        "ttft_s": answer and answer.ttft_s,
        "latency_s": answer and answer.latency_s,
        "token_times_s": answer and [round(time, 6) for time in answer.token_times_s],
        "prompt_tokens": answer and answer.prompt_tokens,
        "dynamic_tokens": call.call.dynamic_tokens,
        "output_tokens": answer and answer.output_tokens,
        "cached_device": answer and answer.cached_device,
        "cached_host": answer and answer.cached_host,
        "error": call.error,
    }


def _write_json(path: Path, value: Any) -> None:
    path.write_text(f"{json.dumps(value, indent=1)}\n", encoding="utf-8")
