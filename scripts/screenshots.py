"""Write the pictures of docs/pictures from a recording of a real run.

    python scripts/screenshots.py [--recording FILE] [--at SECONDS]

Without a recording, the one that `kvflow top --demo` shows; without a time, three quarters of it.
Two recordings are compared by the example of its halves.
"""

import argparse
import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from kvflow.cli.top_show import DEMO
from kvflow.frames import Frame
from kvflow.tui.options import ScreenOptions
from kvflow.tui.record import Recorder
from kvflow.tui.recording import Recording
from kvflow.tui.screen.app import TopApp
from kvflow.tui.screen.compare import CompareApp
from kvflow.tui.source import Link, Status
from kvflow.tui.store import Store
from kvflow.tui.words import clock

TARGET = Path(__file__).parents[1] / "docs" / "pictures"
WIDE, NARROW = (120, 40), (80, 24)
PICTURES: dict[str, tuple[tuple[int, int], list[str]]] = {
    "top": (WIDE, []),
    "top-details": (WIDE, ["slash", *"agent:e", "enter", "n", "enter"]),
    "top-workflow": (WIDE, ["w"]),
    "top-narrow": (NARROW, ["2"]),
}
"""By name: the terminal's size, and the keys that lead there."""
HURRY = 100.0
"""Times faster than it happened, where all of a recording is to be seen."""
SETTLES_S = 1.0  # until the footer is there and every panel has its size
_FONTS = re.compile(r"@font-face\s*\{.*?\}\s*", re.DOTALL)


class Excerpt:
    """A Source of a recording's frames up to a moment, as fast as they can be shown."""

    interval_s = 1.0

    def __init__(self, recording: Recording, until_s: float) -> None:
        self._recording, self._until_s = recording, until_s
        self.label = recording.label
        moment = f"{clock(until_s)}/{clock(recording.duration_s)}"
        self.status = Status(Link.REPLAY, f"REPLAY {moment}")

    async def frames(self) -> AsyncIterator[Frame]:
        """The frames, then no more."""
        for number in range(self._recording.at(self._until_s) + 1):
            yield self._recording.frame(number)

    def refresh(self) -> None:
        """There is nothing to ask."""


async def picture(source: Excerpt, size: tuple[int, int], keys: list[str]) -> str:
    """The screen at the end of the excerpt, after some keys, as SVG."""
    with tempfile.TemporaryDirectory() as scratch:
        app = TopApp(source, telemetry=None, options=ScreenOptions(), folder=Path(scratch))
        async with app.run_test(size=size) as pilot:
            await app.workers.wait_for_complete()
            for key in keys:
                await pilot.pause()
                await pilot.press(key)
            await pilot.pause(SETTLES_S)
            return stable(app.export_screenshot(title="kvflow top"))


async def comparison(recording: Recording) -> str:
    """Both halves of a recording side by side, at their end, as SVG."""
    middle, end = len(recording) // 2, len(recording)
    with tempfile.TemporaryDirectory() as scratch:
        halves = [
            (Path(f"{name}.kvtrace"), excerpt(recording, frames, Path(scratch) / name))
            for name, frames in (
                ("first-half", range(middle)),
                ("second-half", range(middle, end)),
            )
        ]
        app = CompareApp(halves, HURRY, options=ScreenOptions(), folder=Path(scratch))
        async with app.run_test(size=WIDE) as pilot:
            while app.pair.position_s < app.pair.duration_s:
                await pilot.pause(0.1)
            app.pair.speed = 1.0
            await pilot.pause(SETTLES_S)
            return stable(app.export_screenshot(title="kvflow top"))


def excerpt(recording: Recording, frames: range, path: Path) -> Recording:
    """Some frames of a recording as one of its own."""
    store = Store()
    with Recorder(path, recording.label) as recorder:
        for number in range(recording.key_before(frames.start), frames.stop):
            store.apply(recording.frame(number))
            if number >= frames.start:
                recorder.add(store)
    return Recording(path)


def stable(svg: str) -> str:
    """The SVG without what differs from run to run, and without fonts from elsewhere."""
    return _FONTS.sub("", re.sub(r"terminal-\d+-", "terminal-", svg))


def main() -> None:
    """Write all pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recording", type=Path, default=DEMO)
    parser.add_argument("--at", type=float, help="seconds after its beginning")
    chosen = parser.parse_args()
    recording = Recording(chosen.recording)
    at_s = chosen.at if chosen.at is not None else recording.duration_s * 0.75
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, (size, keys) in PICTURES.items():
        svg = asyncio.run(picture(Excerpt(recording, at_s), size, keys))
        (TARGET / f"{name}.svg").write_text(svg, encoding="utf-8")
    svg = asyncio.run(comparison(recording))
    (TARGET / "top-compare.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
