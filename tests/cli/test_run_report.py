import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from support.recipes import make_recipe

from kvflow.cli import run_report
from kvflow.cli.run_report import Outcome
from kvflow.client.drive import Settings
from kvflow.client.exchange import Answer
from kvflow.client.records import CallRecord, CallState, RunRecord
from kvflow.client.server import ServerInfo
from kvflow.workload import plan_run

NAME = "a-rather-long-agent-name"
ONE_CALL = ["1", "1,000", "1,000", "1,000", "2,000", "123,456", "3,000", "3,000"]


def answer(seconds: float, tier: int | None) -> Answer:
    return Answer("text", None, "stop", seconds, 2 * seconds, 123_456, 9, 7_000, tier, tier)


def outcome_of(folder: Path, *, done: int, failed: int = 0, tier: int | None = 3_000) -> Outcome:
    """So many calls of one agent: the n-th takes n seconds to its first token."""
    loaded = make_recipe(folder, {NAME: {}})
    outcome = Outcome(loaded, Settings(client="app", runs=9, concurrency=1, seed=7))
    outcome.server = ServerInfo("http://127.0.0.1:1", "sglang", "model", "0.5.23")
    for run in range(done + failed):
        (call,) = plan_run(loaded, run, 7)
        record = CallRecord(call, f"r{run}", CallState.DONE if run < done else CallState.FAILED)
        record.answer = answer(float(run + 1), tier) if run < done else None
        record.error = "" if run < done else f"call {call.id} (agent): it broke"
        outcome.ledger.calls.append(record)
        outcome.ledger.runs.append(RunRecord(f"r{run}", run, 0.0, run + 1.0, run < done))
    return outcome


def written(
    outcome: Outcome, monkeypatch: pytest.MonkeyPatch, width: int, *, terminal: bool
) -> list[str]:
    screen = io.StringIO()
    console = Console(
        file=screen, width=width, force_terminal=terminal, soft_wrap=True, color_system=None
    )
    monkeypatch.setattr(run_report, "out", lambda: console)
    run_report.write(outcome, as_json=False)
    return screen.getvalue().splitlines()


def test_write_table_has_mean_and_percentiles_of_ttft_and_the_sums(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = written(outcome_of(tmp_path, done=3), monkeypatch, 100, terminal=False)
    numbers = ["3", "2,000", "2,000", "2,900", "4,000", "370,368", "9,000", "9,000"]
    assert lines[2].split() == [NAME, *numbers]
    assert lines[3].split() == ["all", *numbers]
    assert lines[4].startswith("3 of 9 runs in 0.00 s; a run: mean 2.00 s, p50 2.00, p95 2.90")


def test_write_table_on_a_narrow_terminal_folds_names_and_keeps_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = written(outcome_of(tmp_path, done=1), monkeypatch, 80, terminal=True)
    table = lines[: lines.index(next(line for line in lines if line.startswith("1 of 9")))]
    assert max(len(line) for line in table) <= 80
    assert "".join(line.split()[0] for line in table[2:-1]) == NAME
    assert table[2].split()[1:] == [
        "1",
        "1,000",
        "1,000",
        "1,000",
        "2,000",
        "123,456",
        "3,000",
        "3,000",
    ]


def test_write_table_into_a_pipe_is_as_wide_as_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = written(outcome_of(tmp_path, done=1), monkeypatch, 30, terminal=False)
    assert lines[2].split() == [NAME, *ONE_CALL]


def test_write_table_without_tiers_has_one_column_of_cached_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = outcome_of(tmp_path, done=1, tier=None)
    lines = written(outcome, monkeypatch, 100, terminal=False)
    assert lines[0].split()[-2:] == ["prompt", "cached"]
    assert lines[2].split()[-1] == "7,000"


def test_write_table_with_nothing_measured_has_dashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = written(outcome_of(tmp_path, done=0), monkeypatch, 100, terminal=False)
    assert lines[2].split() == [NAME, "0", *"------"]
    assert lines[-1] == "0 of 9 runs in 0.00 s"


def test_write_lists_ten_failures_and_counts_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = written(outcome_of(tmp_path, done=1, failed=12), monkeypatch, 100, terminal=False)
    assert lines[2].split()[1] == "1/13"
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "failed: call 1.0 (agent): it broke"
    assert len(told) == 11
    assert told[-1] == "and 2 more; --json lists all"


def test_write_json_of_an_interrupted_drive_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = outcome_of(tmp_path, done=2)
    outcome.interrupted = True
    run_report.write(outcome, as_json=True)
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert told["interrupted"] is True
    assert told["run_s"] == {"mean": 1.5, "p50": 1.5, "p95": 1.95}
    assert "interrupted" in captured.err
