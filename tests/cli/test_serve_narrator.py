import io

import pytest
from rich.console import Console

from kvflow.cli import console
from kvflow.cli.serve_narrator import Narrator


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("kvflow.cli.serve_narrator.time.monotonic", clock)
    return clock


def write_to(monkeypatch: pytest.MonkeyPatch, file: io.StringIO, *, terminal: bool) -> None:
    shown = Console(file=file, force_terminal=terminal, soft_wrap=True, highlight=False)
    monkeypatch.setattr(console, "err", lambda: shown)


def test_phase_that_is_over_is_told_with_its_seconds(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.StringIO()
    write_to(monkeypatch, file, terminal=False)

    with Narrator() as narrator:
        narrator.phase("checking")
        clock.now = 1.5
        narrator.phase("starting")
        clock.now = 4.0
        narrator.done()

    assert [line.split() for line in file.getvalue().splitlines()] == [
        ["checking", "1.5", "s"],
        ["starting", "2.5", "s"],
    ]
    assert narrator.elapsed_s == 4.0


def test_phase_that_came_to_nothing_is_told_as_such(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.StringIO()
    write_to(monkeypatch, file, terminal=False)

    with Narrator() as narrator:
        narrator.phase("warming a")
        clock.now = 1.5
        narrator.failed()
        narrator.done()

    assert file.getvalue().split() == ["warming", "a", "failed", "after", "1.5", "s"]


def test_phase_that_lasts_is_recalled_every_ten_seconds(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.StringIO()
    write_to(monkeypatch, file, terminal=False)

    with Narrator() as narrator:
        for second in range(25):
            clock.now = float(second)
            narrator.phase("loading")

    assert file.getvalue().splitlines() == ["... loading  10 s", "... loading  20 s"]


def test_phase_that_is_left_open_is_not_told_as_over(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.StringIO()
    write_to(monkeypatch, file, terminal=False)

    with Narrator() as narrator:
        narrator.phase("loading")

    assert file.getvalue() == ""


def test_phase_on_a_terminal_spins_and_is_told_when_over(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    write_to(monkeypatch, file, terminal=True)

    with Narrator() as narrator:
        narrator.phase("loading")
        narrator.done()

    assert "\x1b" in file.getvalue()
    assert "loading                     0.0 s" in file.getvalue()


def test_say_markup_and_brackets_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    write_to(monkeypatch, file, terminal=False)

    with Narrator() as narrator:
        narrator.say("[bold]SGLang[/bold] [2026-01-01]")

    assert file.getvalue() == "[bold]SGLang[/bold] [2026-01-01]\n"
