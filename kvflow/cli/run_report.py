"""What `kvflow run` leaves on stdout: a summary table, or everything as JSON."""

import sys
from dataclasses import dataclass, field
from typing import Any

import msgspec
from rich.table import Table

from kvflow import __version__
from kvflow.cli.console import err, out
from kvflow.client.drive import Settings
from kvflow.client.records import CallRecord, CallState, Ledger, Result
from kvflow.client.server import ServerInfo
from kvflow.client.summary import AgentSummary, Spread, spread, summarise, summarise_agents
from kvflow.recipe.load import Loaded

SCHEMA_VERSION = 1
_MOST_FAILURES = 10  # shown one by one
_AGENT_WIDTH = 8  # columns that a name keeps on a narrow terminal
_NO_EDGE = 1000  # columns; what is piped on is not squeezed


@dataclass(slots=True)
class Outcome:
    """What is known of a drive, at any time and after any end."""

    loaded: Loaded
    settings: Settings
    ledger: Ledger = field(default_factory=Ledger)
    server: ServerInfo | None = None
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def result(self) -> Result:
        """What was measured until now."""
        return Result(self.ledger.calls, self.ledger.runs, self.seconds)

    @property
    def run_seconds(self) -> Spread | None:
        """How long the runs took that went through."""
        return spread([run.seconds for run in self.ledger.runs if run.ok])


def write(outcome: Outcome, as_json: bool) -> None:
    """Write the outcome: data to stdout, failures to stderr."""
    if as_json:
        sys.stdout.write(
            f"{msgspec.json.format(msgspec.json.encode(document(outcome))).decode()}\n"
        )
    else:
        _write_table(outcome)
    if outcome.interrupted:
        err().print("interrupted: this is what was measured until then")
    failures = outcome.result.failures
    for record in failures[:_MOST_FAILURES]:
        err().print(f"failed: {record.error}", markup=False)
    if len(failures) > _MOST_FAILURES:
        err().print(f"and {len(failures) - _MOST_FAILURES} more; --json lists all")


def document(outcome: Outcome) -> dict[str, Any]:
    """Everything that was measured. Keys are only ever added; times in seconds."""
    settings, calls = outcome.settings, outcome.ledger.calls
    agents = summarise_agents(outcome.loaded.recipe.agents, calls)
    return {
        "schema_version": SCHEMA_VERSION,
        "kvflow": __version__,
        "recipe": outcome.loaded.recipe.name,
        "server": outcome.server and outcome.server._asdict(),
        "settings": settings,
        "interrupted": outcome.interrupted,
        "seconds": outcome.seconds,
        "run_s": outcome.run_seconds,
        "agents": agents,
        "all": summarise(calls),
        "runs": outcome.ledger.runs,
        "calls": [_call(record) for record in calls],
    }


def _call(record: CallRecord) -> dict[str, Any]:
    call = record.call
    return {
        "run": record.run,
        "call": call.id,
        "agent": call.agent,
        "activation": call.activation,
        "part": call.part,
        "predecessors": [f"{call.run}.{index}" for index in call.predecessors],
        "dynamic_tokens": call.dynamic_tokens,
        "state": record.state,
        "started_s": record.started_s,
        "answer": record.answer,
        "error": record.error,
    }


def milliseconds(seconds: float | None) -> str:
    """Seconds as whole milliseconds; a dash if there are none."""
    return "-" if seconds is None else f"{seconds * 1000:,.0f}"


def tokens(count: int | None) -> str:
    """A count of tokens; a dash if it is not known."""
    return "-" if count is None else f"{count:,}"


def _write_table(outcome: Outcome) -> None:
    calls = outcome.ledger.calls
    by_agent = summarise_agents(outcome.loaded.recipe.agents, calls)
    rows = [*by_agent.items(), ("all", summarise(calls))]
    # A server that counts cached tokens does not always say where it found them.
    cached = ("device", "host") if rows[-1][1].cached_device is not None else ("cached",)
    table = Table(box=None, pad_edge=False)
    table.add_column("\nagent", overflow="fold", min_width=_AGENT_WIDTH)
    times = ("TTFT ms\nmean", "\np50", "\np95", "latency ms\nmean")
    for heading in ("\ncalls", *times, *(f"{part}\ntokens" for part in ("prompt", *cached))):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, summary in rows:
        in_tiers = (summary.cached_device, summary.cached_host)
        found = (summary.cached_tokens,) if len(cached) == 1 else in_tiers
        table.add_row(name, *_cells(summary), *map(tokens, found))
    if not out().is_terminal:
        boundless = out().options.update(width=_NO_EDGE)
        table.width = out().measure(table, options=boundless).maximum
    out().print(table)
    out().print(_last_line(outcome))


def _cells(summary: AgentSummary) -> list[str]:
    done, failed = summary.calls[CallState.DONE], summary.calls[CallState.FAILED]
    ttft, latency = summary.ttft_s, summary.latency_s
    times = (ttft.mean, ttft.p50, ttft.p95) if ttft else (None, None, None)
    count = f"{done}/{done + failed}" if failed else str(done)
    return [
        count,
        *map(milliseconds, times),
        milliseconds(latency.mean if latency else None),
        tokens(summary.prompt_tokens),
    ]


def _last_line(outcome: Outcome) -> str:
    whole, settings = outcome.run_seconds, outcome.settings
    through = sum(run.ok for run in outcome.ledger.runs)
    line = f"{through} of {settings.runs} runs in {outcome.seconds:.2f} s"
    if whole is None:
        return line
    return f"{line}; a run: mean {whole.mean:.2f} s, p50 {whole.p50:.2f}, p95 {whole.p95:.2f}"
