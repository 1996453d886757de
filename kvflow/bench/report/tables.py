"""The result as CSV and as Markdown."""

import csv
import io
from collections.abc import Sequence

from kvflow.bench.report import words
from kvflow.bench.result import ArmFigures, Document

_SHARES = ("device_share", "host_share")
_SUMS = ("reusable_tokens", "device_tokens", "host_tokens", "computed_tokens")


def as_csv(documents: Sequence[Document]) -> str:
    """A row for each setting and arm, with every number that belongs to an arm alone."""
    rows = [
        {"recipe": document.recipe, "setting": document.setup["setting"], "arm": name, **_row(arm)}
        for document in documents
        for name, arm in document.arms.items()
    ]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _row(arm: ArmFigures) -> dict[str, object]:
    row: dict[str, object] = {"repeats": arm.repeats}
    if arm.run_s is not None:
        row |= {f"run_s_{name}": value for name, value in arm.run_s.model_dump().items()}
    row |= {name: getattr(arm, name) for name in (*_SUMS, *_SHARES)}
    row |= {"cpu_cores": arm.cpu_cores, "mismatch": arm.mismatch, "failure": arm.failure}
    return row | arm.metrics | {f"engine_{name}": value for name, value in arm.engine.items()}


def as_markdown(documents: Sequence[Document]) -> str:
    """A section for each setting: words, table, every comparison."""
    return "\n".join(section(document) for document in documents)


def section(document: Document) -> str:
    """One setting."""
    lines = [f"## {words.heading(document)}", "", f"{words.conditions(document)}.", ""]
    lines += [f"**{document.verdict.headline}**", ""]
    lines += [f"- {reason}" for reason in document.verdict.reasons]
    lines += [f"- *To change it:* {advice}." for advice in document.verdict.advice]
    lines += ["", *_table(words.COLUMNS, [words.cells(document, arm) for arm in document.arms])]
    lines += ["", *_comparisons(document)]
    if said := words.paper(document):
        lines += ["", *(f"- {line}" for line in said)]
    if by_tier := _by_agent(document):
        lines += ["", *by_tier]
    return "\n".join([*lines, ""])


def _comparisons(document: Document) -> list[str]:
    pairs = [pair for pair in document.speedups if pair != "ttft"]
    rows = []
    for pair in pairs:
        run, ttft = document.speedup(pair), document.speedup(pair, "ttft")
        rows.append((pair, *(words.claimed(ratio) if ratio else "-" for ratio in (run, ttft))))
    return _table(("compared", "whole run", "first token"), rows)


def _by_agent(document: Document) -> list[str]:
    rows = [
        (
            agent,
            name,
            f"{figures.ttft_ms:,.0f}",
            f"{figures.device_tokens:,}",
            f"{figures.host_tokens:,}",
            f"{figures.computed_tokens:,}",
        )
        for name, arm in document.arms.items()
        for agent, figures in arm.agents.items()
    ]
    columns = ("agent", "arm", "TTFT ms", "tokens on device", "on host", "computed")
    table = _table(columns, sorted(rows))
    return ["<details><summary>By agent</summary>", "", *table, "", "</details>"] if rows else []


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
