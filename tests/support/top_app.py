"""`kvflow top` without a terminal: shown in a size, with frames that were made by hand."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from support.top_scene import life
from support.top_sources import Scripted
from textual.pilot import Pilot

from kvflow.telemetry.sampler import Sampler
from kvflow.tui.options import ScreenOptions
from kvflow.tui.screen.app import TopApp
from kvflow.tui.source import Source

NOON = datetime(2026, 1, 2, 12, 30, 5)
NARROW, WIDE, ROOMY = (80, 24), (120, 40), (200, 60)


@asynccontextmanager
async def shown(
    source: Source | None = None,
    size: tuple[int, int] = WIDE,
    *,
    options: ScreenOptions = ScreenOptions(),  # noqa: B008 - immutable
    folder: Path | None = None,
    telemetry: Sampler | None = None,
) -> AsyncIterator[Pilot[None]]:
    """The program, after all its frames (by default a minute of the scene).

    All but the last three of a scripted source are known before it is shown, which is faster.
    """
    source = source or Scripted(life(60))
    with tempfile.TemporaryDirectory() as scratch:
        app = TopApp(
            source,
            telemetry=telemetry,
            options=options,
            folder=folder or Path(scratch),
            clock=lambda: NOON,
        )
        if isinstance(source, Scripted):
            for frame in source.past():
                app._store.apply(frame)
        try:
            async with app.run_test(size=size) as pilot:
                if isinstance(source, Scripted):
                    await pilot.app.workers.wait_for_complete()
                await pilot.pause()
                yield pilot
        finally:
            app.finish_recording()


def text(pilot: Pilot[None]) -> list[str]:
    """The screen, line by line."""
    strips = pilot.app.screen._compositor.render_strips(pilot.app.size)
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


def page(pilot: Pilot[None]) -> str:
    """The screen as one text."""
    return "\n".join(text(pilot))
