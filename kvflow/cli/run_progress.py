"""What `kvflow run` shows while it runs: a live table on a terminal, else a line now and then."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from rich.live import Live
from rich.table import Table

from kvflow.cli.console import err
from kvflow.cli.run_report import Outcome, milliseconds, tokens
from kvflow.cli.run_tally import Tally
from kvflow.client.records import CallState

_LINE_S = 10.0
_FRAME_S = 0.25


@contextlib.asynccontextmanager
async def progress(outcome: Outcome) -> AsyncIterator[Tally]:
    """Show on stderr how a drive goes on, for as long as the context lasts.

    Yields:
        An observer of the drive, from which the calls are shown.
    """
    settings, server = outcome.settings, outcome.server
    assert server is not None  # progress begins when the server has been reached
    err().print(
        f"{outcome.loaded.recipe.name}: {settings.runs} runs, {settings.concurrency} at a time, "
        f"on {server.url} ({server.label})"
    )
    began = time.perf_counter()
    tally = Tally(outcome.loaded.recipe.agents)
    if not err().is_terminal:
        async with _repeated(lambda: err().print(_line(outcome, tally, began)), _LINE_S):
            yield tally
        return
    with Live(console=err(), auto_refresh=False, transient=True) as live:
        async with _repeated(
            lambda: live.update(_table(outcome, tally, began), refresh=True), _FRAME_S
        ):
            yield tally


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


def _line(outcome: Outcome, tally: Tally, began: float) -> str:
    calls, mean_s = tally.all.calls, tally.all.mean_ttft_s
    counts = ", ".join(f"{calls[state]} {state}" for state in CallState if calls[state])
    ttft = "" if mean_s is None else f", mean TTFT {milliseconds(mean_s)} ms"
    return f"{_head(outcome, began)}; calls: {counts or 'none'}{ttft}"


def _head(outcome: Outcome, began: float) -> str:
    ended = len(outcome.ledger.runs)
    return f"{time.perf_counter() - began:.0f} s: {ended} of {outcome.settings.runs} runs ended"


def _table(outcome: Outcome, tally: Tally, began: float) -> Table:
    table = Table(box=None, pad_edge=False, title=_head(outcome, began), title_justify="left")
    table.add_column("agent")
    for heading in (*CallState, "TTFT ms", "device", "host"):
        table.add_column(heading, justify="right", no_wrap=True)
    for agent, sums in tally.agents.items():
        table.add_row(
            agent,
            *(str(sums.calls[state] or "") for state in CallState),
            milliseconds(sums.mean_ttft_s),
            tokens(sums.cached_device),
            tokens(sums.cached_host),
        )
    return table
