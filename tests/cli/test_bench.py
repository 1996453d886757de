import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import jsonschema
import pytest
from support.bench import make_result
from support.bench_server import BenchServer, _bench_routes  # noqa: F401
from support.recipes import write_recipe
from typer.testing import CliRunner, Result

from kvflow.bench.local import LocalRig
from kvflow.bench.report import folder, plots
from kvflow.bench.result import json_schema
from kvflow.cli import bench, bench_request, bench_session, console
from kvflow.errors import ExitCode, KvflowError, MissingPart, ServerUnreachable, UsageError

PAIR: dict[str, dict[str, object]] = {
    "a": {"fixed_tokens": 50, "output_tokens": 3},
    "b": {"fixed_tokens": 50, "output_tokens": 3, "after": "a"},
}

FLAGS = ("--mem-fraction-static", "0.8")


@pytest.fixture
def recipe(tmp_path: Path) -> str:
    return str(write_recipe(tmp_path, PAIR, workload={"runs": 2, "dynamic_tokens": 10}))


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KVFLOW_API_KEY", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(plots, "write", lambda *_: [])  # tested where they are drawn
    console.out.cache_clear()
    console.err.cache_clear()


def kvflow_bench(*arguments: str) -> Result:
    return CliRunner().invoke(bench.app, list(arguments))


def error_of(result: Result) -> KvflowError:
    assert isinstance(result.exception, KvflowError), result.output
    return result.exception


def live(recipe: str, *arguments: str, **server: object) -> tuple[Result, BenchServer]:
    """Bench a running server between two modes, twice."""
    fake = BenchServer(**server)  # type: ignore[arg-type]
    with fake.running():
        given = ("--url", fake.url, "--repeats", "2", "--out", "out", *arguments)
        return kvflow_bench(recipe, *given), fake


def ordered(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> bench_request.Order:
    """What would be done for a command line."""
    asked: list[bench_request.Request] = []
    monkeypatch.setattr(bench_session, "bench", lambda request, **_: asked.append(request))
    result = kvflow_bench(*arguments)
    assert result.exit_code == 0, result.output
    return bench_request.order(asked[0])


def test_bench_of_a_running_server_compares_its_modes_and_puts_the_mode_back(recipe: str) -> None:
    result, fake = live(recipe, mode="evict")
    assert result.exit_code == 0, result.output
    assert "prefetch" in result.stdout
    assert "off" in result.stdout
    modes = [step for step in fake.steps if step.startswith("mode")]
    assert modes[-1] == "mode evict"
    assert {"mode off", "mode prefetch"} == set(modes[:-1])


def test_bench_narrates_turns_and_time_left_on_stderr_only(recipe: str) -> None:
    result, _ = live(recipe)
    assert "off, repeat 1 (1 of 4)" in result.stderr
    assert "repeat 2 (4 of 4, about 1 s left)" in result.stderr
    assert "found on the device" in result.stderr
    assert "repeat 2" not in result.stdout


def test_bench_json_obeys_its_schema_and_is_what_the_folder_holds(recipe: str) -> None:
    result, _ = live(recipe, "--format", "json")
    body = json.loads(result.stdout)
    jsonschema.validate(body, json_schema(), cls=jsonschema.Draft202012Validator)
    assert json.loads(Path("out/summary.json").read_text()) == body
    assert "prefetch/off" in body["speedups"]


@pytest.mark.parametrize(("form", "begin"), [("csv", "recipe,setting,arm"), ("md", "## flow")])
def test_bench_prints_other_forms(recipe: str, form: str, begin: str) -> None:
    result, _ = live(recipe, "--format", form)
    assert result.stdout.startswith(begin)


def test_bench_takes_lengths_and_counts_from_the_command_line(recipe: str) -> None:
    shape = ("--fixed", "70", "--dynamic", "5..6", "--output", "4")
    result, fake = live(recipe, *shape, "--runs", "3", "--concurrency", "2", "--format", "json")
    setup = json.loads(result.stdout)["setup"]
    assert (setup["runs"], setup["concurrency"], setup["output_tokens"]) == (3, 2, [4])
    assert {len(seen.body["input_ids"]) for seen in fake.seen} == {75, 76}


def test_bench_with_a_condition_that_holds_exits_with_5(recipe: str) -> None:
    result, _ = live(recipe, "--fail-if", "prefetch/off < 99", "--fail-if", "prefetch/off > 99")
    assert result.exit_code == ExitCode.CHECK_FAILED
    assert "check failed in flow: prefetch/off < 99" in result.stderr
    assert "> 99" not in result.stderr.split("check failed")[1]


def test_bench_counts_goodput(recipe: str) -> None:
    result, _ = live(recipe, "--goodput", "ttft:100000", "--format", "json")
    metrics = json.loads(result.stdout)["arms"]["off"]["metrics"]
    assert metrics["request_goodput"] == pytest.approx(metrics["request_throughput"])


def test_bench_whose_server_fails_says_which_call_and_keeps_the_rest(recipe: str) -> None:
    seen = []

    def fault(request: object) -> int | None:
        seen.append(request)
        return 500 if len(seen) > 8 else None  # in the second arm's first turn

    result, _ = live(recipe, fault=fault)
    assert result.exit_code == ExitCode.FAILURE
    assert "failed: prefetch in flow, repeat 1: call" in result.stderr
    assert Path("out/report.md").is_file()
    assert "off" in result.stdout


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["shell", "background"])
def _started_from(request: pytest.FixtureRequest) -> Iterator[None]:
    """A shell's job in the background ignores SIGINT."""
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


def ended(recipe: str, number: signal.Signals) -> tuple[Result, BenchServer]:
    """Bench a running server, and send a signal to the bench in its second arm's first turn."""

    def fault(request: object) -> str | None:
        if not fake.steps.count("mode prefetch"):
            return None
        os.kill(os.getpid(), number)
        return "hang"

    fake = BenchServer(fault=fault)
    with fake.running():
        return kvflow_bench(recipe, "--url", fake.url, "--out", "out", "--repeats", "3"), fake


def check_what_was_measured_is_kept(result: Result, fake: BenchServer) -> None:
    assert "interrupted: this is what was measured until then" in result.stderr
    assert "off" in result.stdout
    assert list(json.loads(Path("out/summary.json").read_text())["arms"]) == ["off"]
    assert fake.steps[-1] == "mode off"


def test_bench_interrupted_reports_what_was_measured_and_exits_with_130(recipe: str) -> None:
    result, fake = ended(recipe, signal.SIGINT)
    assert result.exit_code == ExitCode.INTERRUPTED
    check_what_was_measured_is_kept(result, fake)


@pytest.mark.usefixtures("_started_from")
def test_bench_terminated_reports_what_was_measured_and_exits_with_143(recipe: str) -> None:
    before = signal.getsignal(signal.SIGTERM)
    result, fake = ended(recipe, signal.SIGTERM)
    assert result.exit_code == ExitCode.TERMINATED
    check_what_was_measured_is_kept(result, fake)
    assert signal.getsignal(signal.SIGTERM) is before


def test_bench_whose_terminal_goes_keeps_what_was_measured_and_exits_with_129(
    recipe: str,
) -> None:
    before = signal.getsignal(signal.SIGHUP)
    result, fake = ended(recipe, signal.SIGHUP)
    assert result.exit_code == 129
    check_what_was_measured_is_kept(result, fake)
    assert signal.getsignal(signal.SIGHUP) is before


def test_bench_under_nohup_outlives_its_terminal(recipe: str) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        result, _ = live(recipe, fault=lambda _: os.kill(os.getpid(), signal.SIGHUP))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert result.exit_code == 0


def test_bench_whose_mode_stays_says_how_to_put_it_back(recipe: str) -> None:
    class Stuck(BenchServer):
        def policy(self, body: dict[str, object] | None) -> tuple[int, object]:
            if body == {"mode": "evict"}:
                return 504, {"error": "busy"}
            return super().policy(body)

    with Stuck(mode="evict").running() as fake:
        result = kvflow_bench(recipe, "--url", fake.url, "--repeats", "2", "--out", "out")
    assert "prefetch" in result.stdout
    assert "mode evict was not put back" in error_of(result).what


def test_bench_of_nobody_is_unreachable_and_leaves_no_folder(recipe: str) -> None:
    result = kvflow_bench(recipe, "--url", "http://127.0.0.1:9", "--out", "out")
    assert isinstance(error_of(result), ServerUnreachable)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--arms", "best"], "no arm 'best'"),
        (["--url", "x", "--arms", "hicache"], "cannot bench hicache"),
        (["--url", "x", "--pool-ratio", "0.5"], "--url goes with neither"),
        (["--scale", "cpu"], "--scale cpu is for suites"),
        (["--only", "512"], "--only 512 is in the name of no setting"),
        (["--pool-ratio", "half"], "--pool-ratio 'half' is no list"),
        (["--output", "16,0"], "--output '16,0' is no list"),
        (["--concurrency", "1.5"], "--concurrency '1.5' is no list"),
        (["--dynamic", "many"], "--dynamic many"),
        (["--dynamic", "0"], "--dynamic 0"),
        (["--goodput", "fast"], "--goodput 'fast'"),
        (["--fail-if", "soon"], "no condition"),
        (["--device", "cuda", "--link-ratio", "0.5", "-m", "m"], "is for the CPU engine"),
        (["--device", "cpu", "--pool-ratio", "0.1"], "for the device pool"),
        (["--url", "x", "--", "--tp-size", "2"], "without flags for SGLang: --tp-size 2"),
    ],
)
def test_bench_that_makes_no_sense_is_refused_before_anything_starts(
    recipe: str, arguments: list[str], words: str
) -> None:
    error = error_of(kvflow_bench(recipe, *arguments))
    assert isinstance(error, UsageError)
    assert words in error.what
    assert not Path("results").exists()


def test_bench_of_some_settings_of_a_suite_leaves_out_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = ordered(monkeypatch, "paper-single", "--device", "cpu", "--only", "256/256")
    names = [setting.name for setting in asked.suite.settings]
    assert names == ["4096/256/256 b=1", "8192/256/256 b=1"]


def test_bench_gives_flags_after_two_dashes_to_sglang(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = ordered(monkeypatch, recipe, "--device", "cuda", "--model", "m", "--", *FLAGS).rig
    assert isinstance(rig, LocalRig)
    assert rig.flags == FLAGS


@pytest.mark.parametrize(
    ("arms", "budget_s"),
    [([], 180), (["--arms", "lru,hicache,full"], 270), (["--arms", "all"], 630)],
)
def test_bench_gives_every_arm_the_same_share_of_time(
    recipe: str, monkeypatch: pytest.MonkeyPatch, arms: list[str], budget_s: float
) -> None:
    effort = ordered(monkeypatch, recipe, "--device", "cuda", "--model", "m", *arms).effort
    assert (effort.repeats, effort.budget_s) == (5, budget_s)


def test_bench_without_matplotlib_says_what_is_missing(recipe: str) -> None:
    result, _ = live(recipe)
    assert "report: out/report.md; without pictures, which need matplotlib" in result.stderr


def test_bench_takes_the_key_of_a_server_without_the_line_end_of_its_file(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVFLOW_API_KEY", "secret\n")
    result, _ = live(recipe, api_key="secret")
    assert result.exit_code == 0, result.output


def test_bench_with_a_key_that_is_none_is_refused(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVFLOW_API_KEY", "two words")
    error = error_of(kvflow_bench(recipe, "--url", "http://127.0.0.1:9"))
    assert "no usable API key in KVFLOW_API_KEY" in error.what


def test_bench_with_the_wrong_key_is_pointed_to_no_option_that_it_has_not(recipe: str) -> None:
    result, _ = live(recipe, api_key="secret")
    error = error_of(result)
    assert error.exit_code == ExitCode.AUTH
    assert error.hint == "set KVFLOW_API_KEY; kvflow run and kvflow top take --api-key-file as well"


def test_bench_leaves_no_key_in_what_it_writes(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["kvflow", "bench", "--", "--api-key", "sesame"])
    result, _ = live(recipe, "--format", "json")
    assert "--api-key '***'" in json.loads(result.stdout)["setup"]["command"]
    assert not [path for path in Path("out").iterdir() if "sesame" in path.read_text()]


def test_bench_whose_pictures_fail_says_why_beside_the_report(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[str]:
        raise ValueError("no such font")

    monkeypatch.setattr(plots, "write", fail)
    result, _ = live(recipe)
    assert result.exit_code == 0
    assert "report: out/report.md; without pictures: ValueError: no such font" in result.stderr


def test_bench_whose_folder_cannot_be_written_shows_what_was_measured_and_fails(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    result, _ = live(recipe, "--format", "json")
    assert "prefetch/off" in json.loads(result.stdout)["speedups"]
    assert "report:" not in result.stderr
    error = error_of(result)
    assert (error.what, error.why) == ("out cannot be written", "No space left on device")


def test_bench_into_a_folder_with_something_in_it_is_refused(recipe: str) -> None:
    Path("out").mkdir()
    Path("out/notes.txt").write_text("mine")
    result = kvflow_bench(recipe, "--url", "http://127.0.0.1:9", "--out", "out")
    assert "not empty" in error_of(result).what


@pytest.mark.parametrize("flag", ["--fixed", "--output", "--runs", "--pool-ratio", "--link-ratio"])
def test_bench_of_a_suite_has_sizes_of_its_own(flag: str) -> None:
    error = error_of(kvflow_bench("paper-single", flag, "1"))
    assert f"{flag} 1 does not go with the suite paper-single" in error.what


def test_bench_without_sglang_says_how_to_get_it(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", absent)
    error = error_of(kvflow_bench(recipe))
    assert isinstance(error, MissingPart)
    assert "kvflow[engine]" in error.hint


def test_bench_of_an_unknown_target_suggests_one() -> None:
    assert "did you mean 'peer'" in error_of(kvflow_bench("per")).what


def test_compare_shows_what_has_changed(tmp_path: Path) -> None:
    result, measured = make_result(tmp_path)
    for name in ("one", "two"):
        folder.fill(folder.make(tmp_path / name), result, measured)
    shown = kvflow_bench("compare", "one", "two")
    assert shown.exit_code == 0, shown.output
    assert "no difference" in shown.stdout
    body = json.loads(kvflow_bench("compare", "one", "two", "--json").stdout)
    assert body["schema_version"] == 1
    assert {change["arm"] for change in body["changes"]} == {"lru", "hicache", "full"}


def test_schema_is_printed_as_json() -> None:
    assert json.loads(kvflow_bench("schema").stdout) == json_schema()


def test_schema_of_the_timeline_fits_what_a_bench_leaves(recipe: str) -> None:
    live(recipe)
    body = json.loads(Path("out/timeline.json").read_text())
    schema = json.loads(kvflow_bench("schema", "--timeline").stdout)
    jsonschema.validate(body, schema, cls=jsonschema.Draft202012Validator)
    assert {run["arm"] for run in body["runs"]} == {"off", "prefetch"}
    assert body["runs"][0]["looks"]


def test_bench_help_shows_what_a_recipe_takes_and_fits_80_columns() -> None:
    result = kvflow_bench("--help")
    assert "--pool-ratio" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_bench_module_imports_nothing_heavy() -> None:
    program = (
        "import sys, kvflow.cli.bench; print([m for m in ('httpx2', 'pydantic', 'yaml', "
        "'matplotlib', 'numpy', 'sglang', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
