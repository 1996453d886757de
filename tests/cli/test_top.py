import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import typer
from support.frame_server import Answer, FrameServer
from support.frames import EPOCH_S, ChangingServer, busy_frame, make_frame, make_node
from support.processes import PATIENCE_S, wait_until
from support.recordings import recorded
from typer.testing import CliRunner, Result

from kvflow.cli import top, top_request, top_show
from kvflow.engine import state
from kvflow.errors import KvflowError, MissingPart, NotAuthorised, ServerUnreachable, UsageError
from kvflow.telemetry.sampler import Sampler
from kvflow.tui.filter import parse
from kvflow.tui.live import LiveSource
from kvflow.tui.options import ScreenOptions
from kvflow.tui.recording import Recording
from kvflow.tui.replay import ReplaySource
from kvflow.tui.rows import Column, Sort

app = typer.Typer()
app.command()(top.command)
KVFLOW = str(Path(sys.executable).with_name("kvflow"))
NODES = (make_node(1), make_node(2, 1, hits=7), make_node(3))


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(top_show, "running_servers", list)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("KVFLOW_API_KEY", raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A recording of five seconds."""
    frames = [
        busy_frame(*NODES, at=0),
        *(busy_frame(at=second, delta_since=second) for second in range(1, 6)),
    ]
    return str(recorded(tmp_path / "some.kvtrace", frames))


def kvflow_top(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(app, list(arguments), **options)


def error_of(result: Result) -> KvflowError:
    assert isinstance(result.exception, KvflowError)
    return result.exception


def started(url: str) -> state.ServerState:
    return state.ServerState(
        url=url, pid=os.getpid(), created=0, started_at=0, device="cpu", mode="off", model="m"
    )


def frames_until_interrupted(*frames: Answer) -> list[Answer | Callable[[int], Answer]]:
    """Answers, and with the one after the last a Ctrl-C to this very process."""

    def interrupt(_since: int) -> Answer:
        os.kill(os.getpid(), signal.SIGINT)
        return frames[-1]

    return [*frames, interrupt]


# One moment


def test_top_once_prints_a_picture_and_nothing_else() -> None:
    with FrameServer([busy_frame(*NODES)]).running() as server:
        result = kvflow_top(server.url, "--once")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"kvflow top  {server.url}")
    assert lines[0].endswith("mode prefetch  LIVE")
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if "#2" in line]


def test_top_that_is_no_terminal_prints_one_picture_and_says_so() -> None:
    with FrameServer([busy_frame(*NODES)]).running() as server:
        result = kvflow_top(server.url)
    assert result.exit_code == 0
    assert result.stdout.startswith("kvflow top")
    assert result.stderr == "note: stdout is no terminal: one picture, as with --once\n"


def test_top_json_prints_one_document() -> None:
    with FrameServer([busy_frame(*NODES)]).running() as server:
        result = kvflow_top(server.url, "--json")
    told = json.loads(result.stdout)
    assert (told["schema_version"], told["source"]["label"]) == (1, "LIVE")
    assert [node["id"] for node in told["nodes"]] == [1, 2, 3]
    assert told["machine"]["host"]["memory_total_bytes"] > 0


def test_top_once_waits_for_the_whole_tree() -> None:
    parts = [
        make_frame(make_node(1), seq=1, nodes_left_out=True, tree_nodes=3),
        make_frame(make_node(2), seq=2, nodes_left_out=True, tree_nodes=3, delta_since=1),
        make_frame(make_node(3), seq=3, tree_nodes=3, delta_since=2),
    ]
    with FrameServer(parts).running() as server:
        told = json.loads(kvflow_top(server.url, "--json").stdout)
    assert told["tree"] == {"known": 3, "complete": True, "matching": 3}


def test_top_shows_what_is_asked_for_in_that_order() -> None:
    with FrameServer([busy_frame(*NODES)]).running() as server:
        arguments = ("--filter", "hits<9", "--sort", "-id", "--top", "2")
        told = json.loads(kvflow_top(server.url, "--json", *arguments).stdout)
    assert [node["id"] for node in told["nodes"]] == [3, 1]


def test_top_in_ascii_prints_nothing_else() -> None:
    with FrameServer([busy_frame(*NODES)]).running() as server:
        assert kvflow_top(server.url, "--once", "--ascii").stdout.isascii()


def test_top_shows_twenty_rows_unless_more_are_asked_for() -> None:
    nodes = [make_node(one) for one in range(1, 31)]
    with FrameServer([make_frame(*nodes)]).running() as server:
        few, all_of_them = kvflow_top(server.url), kvflow_top(server.url, "-1", "--top", "99")
    assert "and 10 more rows" in few.stdout
    assert "more rows" not in all_of_them.stdout


# A stream


def test_top_watch_prints_a_document_a_line_until_it_is_interrupted() -> None:
    frames = [busy_frame(*NODES, at=0), busy_frame(at=1, delta_since=1)]
    with FrameServer(frames_until_interrupted(*frames)).running() as server:
        result = kvflow_top(server.url, "--watch", "-d", "0.25")
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["frame"]["seq"] for one in told[:2]] == [1, 2]
    assert result.exit_code == 130


def test_top_stat_prints_a_line_a_tick_under_titles_that_come_again(tmp_path: Path) -> None:
    frames = [busy_frame(at=second) for second in range(45)]
    path = recorded(tmp_path / "r", frames)
    lines = kvflow_top("--replay", str(path), "--stat").stdout.splitlines()
    assert len(lines) == 45 + 3 * 2
    assert [at for at, line in enumerate(lines) if line.split()[0] == "time"] == [1, 23, 45]


def test_top_stat_prints_one_line_for_frames_that_come_fast(tmp_path: Path) -> None:
    frames = [make_frame(time_s=EPOCH_S + quarter / 4) for quarter in range(9)]
    path = recorded(tmp_path / "r", frames)
    assert len(kvflow_top("--replay", str(path), "--stat").stdout.splitlines()) == 2 + 3


def test_top_watch_says_on_stderr_that_the_server_is_in_trouble() -> None:
    answers = [busy_frame(), 404, 404, lambda _since: 404]
    process = None
    with FrameServer(answers).running() as server:
        command = [KVFLOW, "top", server.url, "--watch", "-d", "0.25"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert json.loads(process.stdout.readline())["source"]["link"] == "live"
            line = process.stderr.readline()
            process.send_signal(signal.SIGINT)
    assert line.startswith("kvflow top: NOT KVFLOW (retry")
    assert process.returncode == 130


def test_top_ends_in_peace_when_nobody_reads_any_more(trace: str) -> None:
    command = [KVFLOW, "top", "--replay", trace, "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


# Recordings


def test_top_replay_prints_the_last_moment(trace: str) -> None:
    told = json.loads(kvflow_top("--replay", trace, "--json").stdout)
    assert (told["frame"]["seq"], told["source"]["link"]) == (6, "replay")
    assert told["rates"]["h2d_gbps"] == 1.0
    assert len(told["nodes"]) == 3
    assert told["machine"] is None


def test_top_replay_prints_every_moment_without_waiting(trace: str) -> None:
    result = kvflow_top("--replay", trace, "--watch")
    assert [json.loads(line)["frame"]["seq"] for line in result.stdout.splitlines()] == [
        1, 2, 3, 4, 5, 6,
    ]  # fmt: skip
    assert result.exit_code == 0


def test_top_demo_prints_the_recording_that_comes_along() -> None:
    told = json.loads(kvflow_top("--demo", "--json", "--top", "1").stdout)
    assert "CPU engine" in told["source"]["name"]
    assert told["frame"]["counters"]["prefetches"] > 0
    assert told["frame"]["counters"]["evicted_device_tokens"] > 0
    assert top_show.DEMO.stat().st_size < 300_000


def test_top_records_what_it_prints(tmp_path: Path) -> None:
    file = tmp_path / "some.kvtrace"
    with FrameServer([busy_frame(*NODES)]).running() as server:
        result = kvflow_top(server.url, "--once", "--record", str(file))
    assert result.exit_code == 0
    assert Recording(file).label == server.url
    assert len(Recording(file).frame(0).nodes) == 3


def test_top_without_a_screen_records_until_it_is_terminated(tmp_path: Path) -> None:
    file, changes = tmp_path / "some.kvtrace", ChangingServer(nodes=30)
    answers = [changes.whole(), *(changes.delta() for _ in range(30))]
    with FrameServer(answers).running() as server:
        command = [KVFLOW, "top", server.url, "--no-tui", "--record", str(file), "-d", "0.25"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                wait_until(lambda: len(server.asked) > 2, "the third frame")
                process.terminate()
                stdout, stderr = process.communicate(timeout=PATIENCE_S)
            finally:
                process.kill()
    assert (process.returncode, stdout) == (143, "")
    assert stderr.splitlines()[0] == f"recording {server.url} to {file}; Ctrl-C ends it"
    recording = Recording(file)
    assert not recording.cut_short
    assert len(recording) >= 2


# Two recordings


@pytest.fixture
def other_trace(tmp_path: Path) -> str:
    """A recording of three seconds, with another load."""
    frames = [busy_frame(*NODES, at=2 * second) for second in range(3)]
    return str(recorded(tmp_path / "other.kvtrace", frames, "another server"))


def test_top_compare_prints_a_table_of_the_time_that_both_have(
    trace: str, other_trace: str
) -> None:
    result = kvflow_top("--compare", trace, other_trace, "--once")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "kvflow top  the first 0:04 of two recordings"
    assert lines[1].startswith("A  ")
    assert any(line.startswith("copied from host to device") for line in lines)
    assert max(map(len, lines)) <= 80


def test_top_compare_prints_one_document(trace: str, other_trace: str) -> None:
    told = json.loads(kvflow_top("--compare", trace, other_trace, "--json").stdout)
    assert (told["seconds"], told["b"]["source"]) == (4.0, "another server")
    assert len(told["differences"]) == 11


def test_top_compare_with_itself_finds_no_difference(trace: str) -> None:
    told = json.loads(kvflow_top("--compare", trace, trace, "--json").stdout)
    assert {one["words"] for one in told["differences"]} <= {"", "the same"}


def test_top_compare_that_is_no_terminal_prints_the_table(trace: str) -> None:
    result = kvflow_top("--compare", trace, trace, "--ascii")
    assert "B against A" in result.stdout
    assert result.stdout.isascii()


def test_top_compare_of_what_is_no_recording_says_which(trace: str, tmp_path: Path) -> None:
    (tmp_path / "junk").write_text("junk")
    error = error_of(kvflow_top("--compare", trace, str(tmp_path / "junk"), "-1"))
    assert error.what == f"{tmp_path / 'junk'} is no recording of kvflow top"


# What goes wrong


@pytest.mark.parametrize("mode", ["--once", "--json", "--watch", "--stat"])
def test_top_where_nothing_listens_ends_with_3(mode: str) -> None:
    result = kvflow_top("http://127.0.0.1:9", mode)
    assert isinstance(error_of(result), ServerUnreachable)
    assert error_of(result).exit_code == 3
    assert result.stdout == ""


def test_top_of_a_server_without_kvflow_ends_with_3_and_a_hint() -> None:
    with FrameServer([404]).running() as server:
        error = error_of(kvflow_top(server.url, "--once"))
    assert (error.exit_code, error.hint) == (3, 'start one with "kvflow serve --recipe FILE"')


def test_top_without_the_right_key_ends_with_4() -> None:
    with FrameServer([make_frame()], api_key="right").running() as server:
        result = kvflow_top(server.url, "--once", env={"KVFLOW_API_KEY": "wrong"})
    assert isinstance(error_of(result), NotAuthorised)
    assert error_of(result).exit_code == 4


def test_top_sends_the_key_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    with FrameServer([make_frame()], api_key="secret").running() as server:
        result = kvflow_top(server.url, "--once", "--api-key-file", str(tmp_path / "key"))
    assert result.exit_code == 0
    assert "secret" not in result.output


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--once", "--json"], "--once and --json contradict each other"),
        (["--watch", "--stat", "--no-tui"], "--watch and --stat and --no-tui contradict"),
        (["x:1", "--demo"], "a URL and --demo contradict each other"),
        (["--demo", "--replay", "f"], "--replay and --demo contradict each other"),
        (["--demo", "--record", "f"], "--record does not go with --demo"),
        (["--compare", "f", "g", "--demo"], "--compare and --demo contradict each other"),
        (["--compare", "f", "g", "--watch"], "--compare does not go with --watch"),
        (["--compare", "f", "g", "-1", "--record", "r"], "--record does not go with --compare"),
        (["--no-tui"], "--no-tui shows nothing"),
        (["--record", "f"], "stdout is no terminal that a screen could be shown on"),
        (["--filter", "state:gpu"], "filter, column 1: 'state:gpu'"),
        (["--sort", "size"], "cannot sort by 'size'"),
        (["ftp://x", "--once"], "'ftp://x' is not the URL of a server"),
    ],
)
def test_top_that_makes_no_sense_is_a_usage_error(arguments: list[str], what: str) -> None:
    error = error_of(kvflow_top(*arguments))
    assert isinstance(error, UsageError)
    assert error.what.startswith(what)


@pytest.mark.parametrize(
    "arguments", [["--interval", "0.1"], ["--speed", "0"], ["--top", "-1"], ["-d", "soon"]]
)
def test_top_with_numbers_out_of_range_is_a_usage_error(arguments: list[str]) -> None:
    assert kvflow_top(*arguments).exit_code == 2


# Which server


def test_top_without_a_url_takes_the_server_that_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    with FrameServer([busy_frame()]).running() as server:
        monkeypatch.setattr(top_show, "running_servers", lambda: [started(server.url)])
        told = json.loads(kvflow_top("--json").stdout)
    assert told["source"]["name"] == server.url
    assert os.getpid() in [process["pid"] for process in told["machine"]["host"]["processes"]]


def test_top_without_a_url_among_several_servers_asks_which(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    servers = [started("http://127.0.0.1:9"), started("http://127.0.0.1:10")]
    monkeypatch.setattr(top_show, "running_servers", lambda: servers)
    error = error_of(kvflow_top("--once"))
    assert "http://127.0.0.1:9, http://127.0.0.1:10" in error.what
    assert error.hint == "say which: kvflow top http://127.0.0.1:9"


def test_top_without_a_url_or_a_server_tries_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    with FrameServer([busy_frame()]).running() as server:
        monkeypatch.setattr(top_show, "DEFAULT_URL", server.url)
        assert kvflow_top("--once").exit_code == 0


# What a person has chosen once and for all


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """The usual file, with a preset."""
    file = tmp_path / "config" / "kvflow" / "top.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("presets: {warm: {filter: hits>1, sort: -id, panels: [machine], interval: 5}}")
    return file


@pytest.mark.usefixtures("settings")
def test_top_with_a_preset_shows_its_nodes_unless_an_option_says_otherwise() -> None:
    with FrameServer([busy_frame(*NODES)]).running() as server:
        chosen = json.loads(kvflow_top(server.url, "--json", "--preset", "warm").stdout)
        arguments = ("--preset", "warm", "--filter", "", "--sort", "id")
        other = json.loads(kvflow_top(server.url, "--json", *arguments).stdout)
    assert [node["id"] for node in chosen["nodes"] if node["hits"] > 1] == [2]
    assert [node["id"] for node in other["nodes"]] == [1, 2, 3]


def test_top_reads_the_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("presets: {warm: {sort: size}}")
    error = error_of(kvflow_top("--demo", "-1", "--config", str(tmp_path / "my.yaml")))
    assert isinstance(error, UsageError)
    assert "my.yaml:1:24: presets.warm.sort: cannot sort by 'size'" in error.what


@pytest.mark.usefixtures("settings")
def test_top_with_an_unknown_preset_suggests_one() -> None:
    error = error_of(kvflow_top("--demo", "-1", "--preset", "worm"))
    assert error.what == "no preset 'worm' (did you mean 'warm'?)"


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


# Imports and help


def test_top_prints_without_loading_screens_or_an_engine(trace: str) -> None:
    program = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from kvflow.cli.app import app\n"
        f"assert CliRunner().invoke(app, ['top', '--replay', {trace!r}, '-1']).exit_code == 0\n"
        "print([m for m in ('textual', 'sglang', 'torch', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_top_help_fits_80_columns_and_says_where_the_key_comes_from() -> None:
    result = kvflow_top("--help")
    assert max(len(line) for line in result.stdout.splitlines()) <= 80
    assert "KVFLOW_API_KEY" in result.stdout
