import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from support.fake_server import FakeServer, Seen
from support.recipes import write_recipe
from typer.testing import CliRunner, Result

from kvflow.cli import run
from kvflow.engine import state
from kvflow.errors import ExitCode, KvflowError, NotAuthorised, ServerUnreachable, UsageError

app = typer.Typer()
app.command()(run.command)

PEER: dict[str, dict[str, object]] = {
    "planner": {},
    "executor": {"after": "planner", "fan_out": 2},
}


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    return str(write_recipe(tmp_path, PEER, workload={"runs": 2, "dynamic_tokens": 40}))


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "running_servers", list)
    monkeypatch.delenv("KVFLOW_API_KEY", raising=False)
    monkeypatch.setenv("COLUMNS", "80")


def kvflow_run(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(app, list(arguments), **options)


def error_of(result: Result) -> KvflowError:
    assert isinstance(result.exception, KvflowError)
    return result.exception


def started(url: str, recipe: str | None = None) -> state.ServerState:
    return state.ServerState(
        url=url, pid=1, created=0, started_at=0, device="cpu", mode="off", model="m", recipe=recipe
    )  # fmt: skip


def test_run_shows_a_row_per_agent_and_the_time_of_a_run(recipe: str) -> None:
    with FakeServer(host_tokens=5).running() as fake:
        result = kvflow_run(recipe, fake.url)
    assert result.exit_code == 0
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
    assert [rows[agent][0] for agent in ("planner", "executor", "all")] == ["2", "4", "6"]
    # The first prompt of each agent is new; of the later ones five tokens are in host memory.
    assert [rows[agent][-1] for agent in ("planner", "executor", "all")] == ["5", "20", "25"]
    assert "2 of 2 runs in" in result.stdout
    assert "a run: mean" in result.stdout


def test_run_table_fits_a_terminal_of_80_columns(recipe: str) -> None:
    with FakeServer().running() as fake:
        result = kvflow_run(recipe, fake.url)
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_run_narrates_on_stderr_only(recipe: str) -> None:
    with FakeServer().running() as fake:
        result = kvflow_run(recipe, fake.url)
    assert f"2 runs, 1 at a time, on {fake.url} (SGLang 0.5.23, fake-model)" in result.stderr
    assert fake.url not in result.stdout


def test_run_json_has_every_call_and_run(recipe: str) -> None:
    with FakeServer().running() as fake:
        result = kvflow_run(recipe, fake.url, "--json", "--runs", "3", "--concurrency", "3")
    told = json.loads(result.stdout)
    assert told["schema_version"] == 1
    assert told["server"]["kind"] == "sglang"
    assert len(told["calls"]) == 9
    assert len(told["runs"]) == 3
    assert told["agents"]["executor"]["calls"]["done"] == 6
    executor = next(call for call in told["calls"] if call["agent"] == "executor")
    assert executor["predecessors"] == [executor["call"].replace(".1", ".0")]
    assert {"ttft_s", "latency_s", "cached_device", "cached_host"} <= set(executor["answer"])
    assert told["run_s"]["p95"] >= told["run_s"]["p50"] > 0


def test_run_of_another_server_shows_cached_tokens_without_tiers(recipe: str) -> None:
    with FakeServer("openai").running() as fake:
        result = kvflow_run(recipe, fake.url)
    heading = result.stdout.splitlines()[0].split()
    assert heading == ["TTFT", "ms", "latency", "ms", "prompt", "cached"]


@pytest.mark.parametrize(
    ("arguments", "client"), [((), "flow"), (("--client", "my-app"), "my-app")]
)
def test_run_tags_calls_with_the_client(
    recipe: str, arguments: tuple[str, ...], client: str
) -> None:
    with FakeServer().running() as fake:
        kvflow_run(recipe, fake.url, *arguments)
    assert {seen.params["kvflow"]["client"] for seen in fake.seen} == {client}


def test_run_with_a_client_that_no_server_takes_is_a_usage_error(recipe: str) -> None:
    with FakeServer().running() as fake:
        result = kvflow_run(recipe, fake.url, "--client", "x" * 200)
    assert isinstance(error_of(result), UsageError)
    assert fake.seen == []


def test_run_seed_of_the_flag_wins_over_the_recipe(recipe: str) -> None:
    tasks = []
    for arguments in ((), ("--seed", "0"), ("--seed", "1")):
        with FakeServer().running() as fake:
            kvflow_run(recipe, fake.url, "--runs", "1", *arguments)
        tasks.append(fake.seen[0].body["messages"][-1]["content"])
    assert tasks[0] == tasks[1] != tasks[2]


def test_run_with_failures_ends_with_1_and_still_tells_the_rest(recipe: str) -> None:
    def fault(seen: Seen) -> int | None:
        return 500 if seen.agent == "executor" else None

    with FakeServer(fault=fault).running() as fake:
        result = kvflow_run(recipe, fake.url)
    assert result.exit_code == 1
    assert "0 of 2 runs" in result.stdout
    assert "0/4" in result.stdout
    assert "failed: call 0.1 (executor): HTTP 500: out of order" in result.stderr


def test_run_json_with_failures_names_call_and_reason(recipe: str) -> None:
    with FakeServer(fault=lambda seen: "cut").running() as fake:
        result = kvflow_run(recipe, fake.url, "--json")
    assert result.exit_code == 1
    errors = [call["error"] for call in json.loads(result.stdout)["calls"]]
    assert errors[0].startswith("call 0.0 (planner)")


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["shell", "background"])
def _started_from(request: pytest.FixtureRequest) -> Iterator[None]:
    """A shell's job in the background ignores SIGINT."""
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


def ended(recipe: str, number: signal.Signals) -> tuple[Result, FakeServer]:
    """Walk a workflow, and send a signal to the walk in the first call of its second run."""

    def fault(seen: Seen) -> str | None:
        if len(fake.seen) < 4:
            return None
        os.kill(os.getpid(), number)
        return "hang"

    fake = FakeServer(kvflow=True, fault=fault)
    with fake.running():
        return kvflow_run(recipe, fake.url, "--json"), fake


def check_what_was_measured_is_kept(result: Result, fake: FakeServer) -> None:
    told = json.loads(result.stdout)
    assert told["interrupted"] is True
    assert [call["error"] for call in told["calls"]] == ["", "", "", "interrupted"]
    assert [run["ok"] for run in told["runs"]] == [True, False]
    assert told["runs"][1]["run"] in fake.ends[-1]


def test_run_interrupted_ends_with_130_and_keeps_what_was_measured(recipe: str) -> None:
    result, fake = ended(recipe, signal.SIGINT)
    assert result.exit_code == ExitCode.INTERRUPTED
    check_what_was_measured_is_kept(result, fake)


@pytest.mark.usefixtures("_started_from")
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_run_that_a_signal_ends_keeps_what_was_measured(
    recipe: str, number: signal.Signals, exit_code: int
) -> None:
    before = signal.getsignal(number)
    result, fake = ended(recipe, number)
    assert result.exit_code == exit_code
    assert signal.getsignal(number) is before
    check_what_was_measured_is_kept(result, fake)


def test_run_where_nothing_listens_ends_with_3(recipe: str) -> None:
    result = kvflow_run(recipe, "http://127.0.0.1:9")
    assert isinstance(error_of(result), ServerUnreachable)
    assert error_of(result).exit_code == 3
    assert result.stdout == ""


@pytest.mark.parametrize("way", ["environment", "file", "stdin"])
def test_run_sends_the_api_key_and_never_shows_it(recipe: str, tmp_path: Path, way: str) -> None:
    file = tmp_path / "key"
    file.write_text("secret-key\n", encoding="utf-8")
    arguments, options = {
        "environment": ((), {"env": {"KVFLOW_API_KEY": "secret-key"}}),
        "file": (("--api-key-file", str(file)), {}),
        "stdin": (("--api-key-file", "-"), {"input": "secret-key\n"}),
    }[way]
    with FakeServer(api_key="secret-key").running() as fake:
        result = kvflow_run(recipe, fake.url, *arguments, **options)
    assert result.exit_code == 0
    assert "secret-key" not in result.output


def test_run_with_the_wrong_api_key_ends_with_4(recipe: str) -> None:
    with FakeServer(api_key="right").running() as fake:
        result = kvflow_run(recipe, fake.url, env={"KVFLOW_API_KEY": "wrong"})
    assert isinstance(error_of(result), NotAuthorised)
    assert error_of(result).exit_code == 4


@pytest.mark.parametrize("content", ["", "two\nlines", "schlüssel"])
def test_run_with_an_unusable_key_is_a_usage_error(
    recipe: str, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "key"
    file.write_text(content, encoding="utf-8")
    result = kvflow_run(recipe, "http://127.0.0.1:9", "--api-key-file", str(file))
    assert isinstance(error_of(result), UsageError)
    assert "no usable API key" in error_of(result).what


def test_run_with_a_key_file_that_is_no_text_is_a_usage_error(recipe: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"\xff\xfe")
    result = kvflow_run(recipe, "http://127.0.0.1:9", "--api-key-file", str(file))
    assert isinstance(error_of(result), UsageError)
    assert error_of(result).what == f"no usable API key in {file}"


def test_run_without_the_key_file_is_a_usage_error(recipe: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    result = kvflow_run(recipe, "http://127.0.0.1:9", "--api-key-file", missing)
    assert result.exit_code == 2


def test_run_without_a_url_takes_the_server_that_runs_here(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeServer().running() as fake:
        monkeypatch.setattr(state, "running_servers", lambda: [started(fake.url)])
        assert kvflow_run(recipe).exit_code == 0


def test_run_without_a_url_prefers_the_server_of_the_recipe(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeServer().running() as fake:
        servers = [started("http://127.0.0.1:9", "other.yaml"), started(fake.url, recipe)]
        monkeypatch.setattr(state, "running_servers", lambda: servers)
        assert kvflow_run(recipe).exit_code == 0


def test_run_without_a_url_among_several_servers_asks_which(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = [started("http://127.0.0.1:9"), started("http://127.0.0.1:10")]
    monkeypatch.setattr(state, "running_servers", lambda: servers)
    error = error_of(kvflow_run(recipe))
    assert isinstance(error, UsageError)
    assert "http://127.0.0.1:9, http://127.0.0.1:10" in error.what


def test_run_without_a_url_or_a_server_tries_the_default(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeServer().running() as fake:
        monkeypatch.setattr(run, "DEFAULT_URL", fake.url)
        assert kvflow_run(recipe).exit_code == 0


@pytest.mark.parametrize("flag", ["--runs", "--concurrency"])
def test_run_with_less_than_one_is_a_usage_error(recipe: str, flag: str) -> None:
    assert kvflow_run(recipe, "http://127.0.0.1:9", flag, "0").exit_code == 2


def test_run_help_fits_80_columns_and_says_where_the_key_comes_from() -> None:
    result = kvflow_run("--help")
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    assert "KVFLOW_API_KEY" in result.stdout


def test_run_module_imports_nothing_heavy() -> None:
    program = (
        "import sys, kvflow.cli.run; "
        "print([m for m in ('httpx2', 'pydantic', 'yaml', 'sglang', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
