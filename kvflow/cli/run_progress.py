"""What `kvflow run` shows while it runs: a live table on a terminal, else a line now and then."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from rich.live import Live
from rich.table import Table

from kvflow.cli.console import err
from kvflow.cli.run_report import Outcome, milliseconds, tokens
from kvflow.client.records import CallState
from kvflow.client.summary import summarise, summarise_agents

_LINE_S = 10.0
_FRAME_S = 0.25


@contextlib.asynccontextmanager
async def progress(outcome: Outcome) -> AsyncIterator[None]:
    """Show on stderr how a drive goes on, for as long as the context lasts."""
    settings, server = outcome.settings, outcome.server
    assert server is not None  # progress begins when the server has been reached
    err().print(
        f"{outcome.loaded.recipe.name}: {settings.runs} runs, {settings.concurrency} at a time, "
        f"on {server.url} ({server.label})"
    )
    began = time.perf_counter()
    if not err().is_terminal:
        async with _repeated(lambda: err().print(_line(outcome, began)), _LINE_S):
            yield
        return
    with Live(console=err(), auto_refresh=False, transient=True) as live:
        async with _repeated(lambda: live.update(_table(outcome, began), refresh=True), _FRAME_S):
            yield


@contextlib.asynccontextmanager
async def _repeated(action: Callable[[], None], every_s: float) -> AsyncIterator[None]:
    async def repeat() -> None:
        while True:
            await asyncio.sleep(every_s)
            action()

    task = asyncio.create_task(repeat())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _line(outcome: Outcome, began: float) -> str:
    all_calls = summarise(outcome.ledger.calls)
    counts = ", ".join(f"{count} {state}" for state, count in all_calls.calls.items() if count)
    ttft = f", mean TTFT {milliseconds(all_calls.ttft_s.mean)} ms" if all_calls.ttft_s else ""
    return f"{_head(outcome, began)}; calls: {counts or 'none'}{ttft}"


def _head(outcome: Outcome, began: float) -> str:
    ended = len(outcome.ledger.runs)
    return f"{time.perf_counter() - began:.0f} s: {ended} of {outcome.settings.runs} runs ended"


def _table(outcome: Outcome, began: float) -> Table:
    table = Table(box=None, pad_edge=False, title=_head(outcome, began), title_justify="left")
    table.add_column("agent")
    for heading in (*CallState, "TTFT ms", "device", "host"):
        table.add_column(heading, justify="right", no_wrap=True)
    by_agent = summarise_agents(outcome.loaded.recipe.agents, outcome.ledger.calls)
    for agent, summary in by_agent.items():
        table.add_row(
            agent,
            *(str(summary.calls[state] or "") for state in CallState),
            milliseconds(summary.ttft_s.mean if summary.ttft_s else None),
            tokens(summary.cached_device),
            tokens(summary.cached_host),
        )
    return table
