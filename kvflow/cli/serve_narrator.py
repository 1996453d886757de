"""Tells on stderr what a long command is doing: a spinner on a terminal, plain lines elsewhere."""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kvflow.cli import console

if TYPE_CHECKING:
    from rich.status import Status

_REMIND_S = 10.0


class Narrator:
    """One line for each phase that is over, with the seconds that it took."""

    def __init__(self) -> None:
        self._console = console.err()
        self._spinner: Status | None = None
        self._phase = ""
        self._phase_began = self._reminded = self._began = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close_phase()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the command began."""
        return time.monotonic() - self._began

    def phase(self, name: str) -> None:
        """Say what is being done now; to be called again and again while it goes on."""
        if name != self._phase:
            self._close_phase("")
            self._phase, self._phase_began = name, time.monotonic()
            self._reminded = self._phase_began
        self._show_progress()

    def done(self) -> None:
        """The last phase is over."""
        self._close_phase("")

    def failed(self) -> None:
        """The last phase came to nothing; the command goes on."""
        self._close_phase("failed after")

    def say(self, text: str) -> None:
        """Print a line of narration as it stands."""
        self._console.print(text, markup=False)

    def _show_progress(self) -> None:
        now = time.monotonic()
        text = f"{self._phase}  {now - self._phase_began:.0f} s"
        if self._console.is_terminal:
            if self._spinner is None:
                self._spinner = self._console.status(text)
                self._spinner.start()
            self._spinner.update(text)
        elif now - self._reminded >= _REMIND_S:
            self._reminded = now
            self._console.print(f"... {text}", markup=False)

    def _close_phase(self, outcome: str | None = None) -> None:
        """End the phase, and say how it ended; without an outcome say nothing."""
        if self._spinner is not None:
            self._spinner.stop()
        self._spinner = None
        if outcome is not None and self._phase:
            took = f"{time.monotonic() - self._phase_began:.1f} s"
            self.say(f"{self._phase:<24} {f'{outcome} {took}' if outcome else f'{took:>8}'}")
        self._phase = ""
