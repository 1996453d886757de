"""What a bench keeps, whatever comes in the middle of it or while it writes."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bench_server import BenchServer, _bench_routes  # noqa: F401
from support.recipes import write_recipe
from typer.testing import CliRunner, Result

from kvflow.bench.environment import Environment
from kvflow.bench.report import plots
from kvflow.cli import bench, bench_session, console

ONE: dict[str, dict[str, object]] = {"a": {"fixed_tokens": 50, "output_tokens": 3}}


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KVFLOW_API_KEY", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(plots, "write", lambda *_: [])
    monkeypatch.setattr(bench_session, "environment", dict)
    console.out.cache_clear()
    console.err.cache_clear()


def benched(folder: Path, fake: BenchServer) -> Result:
    """Bench a running server between two modes, once, into `out`."""
    recipe = write_recipe(folder, ONE, workload={"runs": 1, "dynamic_tokens": 10})
    with fake.running():
        given = [str(recipe), "--url", fake.url, "--repeats", "1", "--out", "out"]
        return CliRunner().invoke(bench.app, given)


class NestedOnce(BenchServer):
    """Answers lists in lists instead of the counters of the second mode."""

    def frame(self) -> tuple[int, object]:
        if self.mode != "prefetch":
            return super().frame()
        return 200, b'{"more": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"


def test_bench_whose_server_answers_nonsense_in_the_middle_names_the_arm_and_keeps_the_rest(
    tmp_path: Path,
) -> None:
    result = benched(tmp_path, NestedOnce())
    assert result.exit_code == 1, result.output
    assert "failed: prefetch in flow, repeat 1: asking for counters" in result.stderr
    assert "off" in result.stdout
    assert Path("out/report.md").is_file()


def test_bench_looks_at_the_machine_before_it_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = BenchServer()
    steps: list[list[str]] = []

    def environment() -> Environment:
        steps.append(list(fake.steps))
        return {}

    monkeypatch.setattr(bench_session, "environment", environment)
    assert benched(tmp_path, fake).exit_code == 0
    assert steps == [[]]


def sends(number: signal.Signals) -> Callable[..., list[str]]:
    """Draws nothing, for a signal comes."""

    def write(*_: object) -> list[str]:
        os.kill(os.getpid(), number)
        return []

    return write


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_bench_that_is_ended_while_it_draws_keeps_report_and_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, exit_code: int
) -> None:
    monkeypatch.setattr(plots, "write", sends(number))
    result = benched(tmp_path, BenchServer())
    assert result.exit_code == exit_code, result.output
    assert "prefetch" in result.stdout
    assert "## flow" in Path("out/report.md").read_text()
