"""The result as CSV and as Markdown."""

import csv
import io
from collections.abc import Sequence

from kvflow.bench.arms import ARMS
from kvflow.bench.report import words
from kvflow.bench.result import ArmFigures, Document
from kvflow.bench.stats import Claim
from kvflow.bench.verdict import in_words

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
    row |= {"cpu_cores": arm.cpu_cores, "failure": arm.failure}
    row |= {"mismatch": arm.mismatch, "answers_compared": arm.answers_compared}
    return row | arm.metrics | {f"engine_{name}": value for name, value in arm.engine.items()}


def as_markdown(documents: Sequence[Document]) -> str:
    """A section for each setting: words, table, every comparison; of several an overview first."""
    return "\n".join([*overview(documents), *(section(document) for document in documents)])


def overview(documents: Sequence[Document]) -> list[str]:
    """Every setting in a row, once for whole runs and once for first tokens; nothing of one."""
    bases = words.bases_of(documents)
    if len(documents) < 2 or not bases:
        return []
    lines = [
        "## Overview",
        "",
        f"Times as fast as {' or '.join(bases)}, with 95 % intervals; bold where a difference is "
        "claimed, else none could be shown.",
    ]
    arms = [arm for arm in ARMS if any(arm in document.arms for document in documents)]
    shown = [arm for arm in arms if [arm] != bases]
    with_paper = any(document.setup.get("paper") for document in documents)
    for title, metric in (("whole run", "run"), ("first token", "ttft")):
        paper = [words.PAPER] if metric == "run" and with_paper else []
        rows = [
            (
                document.setup["setting"],
                *(_at_a_glance(document, arm, metric) for arm in shown),
                *(words.paper_in_short(document) for _ in paper),
            )
            for document in documents
        ]
        lines += ["", *_table((title, *shown, *paper), rows)]
    return [*lines, ""]


def _at_a_glance(document: Document, arm: str, metric: str) -> str:
    ratio = words.over_baseline(document, arm, metric)
    if ratio is None:
        return "-"
    text = in_words(ratio)
    return f"**{text}**" if ratio.claim in (Claim.FASTER, Claim.SLOWER) else text


def section(document: Document, timeline: str | None = None) -> str:
    """One setting, with the name of its timeline if there is one."""
    lines = [f"## {words.heading(document)}", "", f"{words.conditions(document)}.", ""]
    lines += [f"**{document.verdict.headline}**", ""]
    lines += [f"- {reason}" for reason in document.verdict.reasons]
    lines += [f"- *To change it:* {advice}." for advice in document.verdict.advice]
    lines += ["", *_table(words.COLUMNS, [words.cells(document, arm) for arm in document.arms])]
    if timeline is not None:
        lines += ["", f"![timeline]({timeline})"]
    if len(document.speedups) > 1:
        lines += ["", *_comparisons(document)]
    lines += ["", *_times(document), "", *_use(document)]
    if did := _engine(document):
        lines += ["", *did]
    if said := [*words.goodput(document), *words.plain(document), *words.paper(document)]:
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


def _times(document: Document) -> list[str]:
    """Tails: of whole runs in seconds, of calls in milliseconds."""
    columns = (
        "arm", "run p50", "p95", "p99", "TTFT p50", "p95", "p99", "TPOT", "ITL p99",
        "E2E p50", "p99",
    )  # fmt: skip
    rows = []
    for name, arm in document.arms.items():
        if arm.run_s is None:
            continue
        times = [
            arm.metrics.get(key)
            for key in (
                "median_ttft_ms", "p95_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_itl_ms",
                "median_e2el_ms", "p99_e2el_ms",
            )
        ]  # fmt: skip
        runs = (arm.run_s.p50, arm.run_s.p95, arm.run_s.p99)
        calls = ("-" if value is None else f"{value:,.0f}" for value in times)
        rows.append((name, *(f"{value:.2f}" for value in runs), *calls))
    return _table(columns, rows)


def _use(document: Document) -> list[str]:
    """What of the machine each arm used; a dash for what could not be read."""
    columns = ("arm", "cores busy", "GPU busy", "GB/s to the device", "of the emulated link")
    rows = []
    for name, arm in document.arms.items():
        numbers = (
            "-" if value is None else f"{value:.2f}" for value in (arm.cpu_cores, arm.gpu_busy)
        )
        rate = "-" if arm.h2d_gbps is None else f"{arm.h2d_gbps:.3g}"
        share = "-" if arm.link_share is None else f"{arm.link_share:.0%}"
        rows.append((name, *numbers, rate, share))
    return _table(columns, rows)


_COUNTED = {
    "prefetches": "prefetches",
    "prefetched_tokens": "tokens prefetched",
    "prefetched_used_tokens": "prefetched tokens found by a call",
    "prefetched_late_tokens": "found while still on their way",
    "prefetched_wasted_tokens": "evicted before any call found them",
    "waits": "forwards that waited for a load",
    "demand_bytes": "bytes loaded on demand",
    "h2d_bytes": "bytes loaded in all",
    "d2h_bytes": "bytes backed up",
    "not_backed_up_tokens": "tokens not backed up",
    "evicted_device_tokens": "tokens evicted from the device",
    "evicted_host_tokens": "tokens evicted from the host",
    "deferred_calls": "calls deferred",
    "unexpected_calls": "calls that were not expected",
    "unknown_agents": "calls of agents that the server does not know",
    "other_prompt": "calls with another prompt than was registered",
    "bad_hints": "hints that made no sense",
    "doubted_hints": "agents that came near and were not prefetched for",
}


def _engine(document: Document) -> list[str]:
    """What kvflow did while runs were measured, mode by mode; stock SGLang does not say."""
    arms = {name: arm.engine for name, arm in document.arms.items() if arm.engine}
    rows = [
        (told, *(f"{counts.get(key, 0):,.0f}" for counts in arms.values()))
        for key, told in _COUNTED.items()
        if any(counts.get(key) for counts in arms.values())
    ]
    return _table(("what kvflow did", *arms), rows) if rows else []


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
