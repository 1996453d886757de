import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from support.fake_server import FakeServer, Seen
from support.recipes import write_recipe
from typer import Typer
from typer.testing import CliRunner

from kvflow.cli import run, run_progress

app = Typer()
app.command()(run.command)


def shown(monkeypatch: pytest.MonkeyPatch, folder: Path, *, terminal: bool) -> str:
    """What stderr shows of a run whose second agent answers only once something was shown."""
    screen = io.StringIO()
    console = Console(
        file=screen, force_terminal=terminal, width=100, soft_wrap=True, color_system=None
    )
    monkeypatch.setattr(run_progress, "err", lambda: console)
    monkeypatch.setattr(run_progress, "_LINE_S", 0.01)
    monkeypatch.setattr(run_progress, "_FRAME_S", 0.01)

    def fault(seen: Seen) -> None:
        while seen.agent == "executor" and "1 done" not in screen.getvalue() and not terminal:
            fake.release.wait(0.01)
        while seen.agent == "executor" and "executor" not in screen.getvalue() and terminal:
            fake.release.wait(0.01)

    path = write_recipe(folder, {"planner": {}, "executor": {"after": "planner"}})
    fake = FakeServer(host_tokens=5, fault=fault)
    with fake.running():
        result = CliRunner().invoke(app, [str(path), fake.url, "--runs", "1"])
    assert result.exit_code == 0
    return screen.getvalue()


def test_progress_without_a_terminal_writes_plain_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = shown(monkeypatch, tmp_path, terminal=False)
    line = r"\d+ s: 0 of 1 runs ended; calls: 1 (waiting|prefill), 1 done, mean TTFT "
    assert re.search(line, text), text
    assert "\x1b" not in text


def test_progress_on_a_terminal_shows_a_row_per_agent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = shown(monkeypatch, tmp_path, terminal=True)
    heading = next(line for line in text.splitlines() if "waiting" in line)
    for column in ("agent", "prefill", "decoding", "done", "failed", "TTFT ms", "device", "host"):
        assert column in heading
    assert any(line.startswith("executor") for line in text.splitlines())
