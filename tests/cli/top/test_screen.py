"""What the screens of `kvflow top` are given to show."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from support.top_command import error_of, kvflow_top

from kvflow.cli import top_request
from kvflow.errors import MissingPart
from kvflow.telemetry.sampler import Sampler
from kvflow.tui.filter import parse
from kvflow.tui.live import LiveSource
from kvflow.tui.options import ScreenOptions
from kvflow.tui.replay import ReplaySource
from kvflow.tui.rows import Column, Sort

# The screen


class Screen:
    """Stands in for the screens, and notes what it was to show."""

    def __init__(self) -> None:
        self.source: Any = None
        self.telemetry: Sampler | None = None
        self.options = ScreenOptions()

    def run(self, source: Any, *, telemetry: Sampler | None, options: ScreenOptions) -> None:
        self.source, self.telemetry, self.options = source, telemetry, options


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A terminal, and a screen that ends at once."""
    found = Screen()
    module = ModuleType("kvflow.tui.screen.app")
    module.run = found.run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(top_request, "sys", SimpleNamespace(stdout=terminal, stderr=sys.stderr))
    return found


def test_top_on_a_terminal_shows_a_live_server_with_its_machine(screen: Screen) -> None:
    arguments = ("-d", "2", "-f", "locked", "--sort", "-steps", "--ascii", "--record", "f")
    assert kvflow_top("127.0.0.1:9", *arguments).exit_code == 0
    assert isinstance(screen.source, LiveSource)
    assert (screen.source.label, screen.source.interval_s) == ("http://127.0.0.1:9", 2.0)
    assert screen.telemetry is not None
    assert screen.telemetry.latest is not None
    options = screen.options
    assert options.filter.text == parse("locked").text
    assert (options.interval_s, options.ascii, options.record) == (2.0, True, Path("f"))
    assert options.sort == Sort(Column.STEPS, descending=True)


@pytest.mark.usefixtures("settings")
def test_top_on_a_terminal_begins_with_the_preset(screen: Screen) -> None:
    assert kvflow_top("127.0.0.1:9", "--preset", "warm").exit_code == 0
    assert (screen.source.interval_s, screen.options.panels) == (5.0, ("machine",))
    assert set(screen.options.config.presets) == {"warm"}


def test_top_on_a_terminal_shows_no_machine_beside_a_server_elsewhere(screen: Screen) -> None:
    assert kvflow_top("http://gpu-box.example.org:30000").exit_code == 0
    assert screen.telemetry is None


def test_top_on_a_terminal_plays_a_recording_once_and_the_demo_for_ever(
    screen: Screen, trace: str
) -> None:
    assert kvflow_top("--replay", trace, "--speed", "4").exit_code == 0
    assert isinstance(screen.source, ReplaySource)
    assert (screen.source.label, screen.source.speed) == ("a server", 4.0)
    assert screen.telemetry is None
    assert kvflow_top("--demo").exit_code == 0
    assert "CPU engine" in screen.source.label


def test_top_without_textual_says_what_to_install(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "kvflow.tui.screen.app")
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setitem(sys.modules, "textual.app", None)
    error = error_of(kvflow_top("http://127.0.0.1:9"))
    assert isinstance(error, MissingPart)
    assert (error.exit_code, "kvflow[tui]" in error.hint) == (6, True)
