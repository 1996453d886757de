"""`kvflow serve` as a person meets it: a process, its two streams, its signals and its status."""

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from http.client import RemoteDisconnected
from pathlib import Path
from typing import IO

import psutil
import pytest
from support.launches import fake_environment, free_port
from support.processes import PATIENCE_S, processes_listed_in, still_running, wait_until
from support.recipes import write_recipe
from support.tmux import Terminal

from kvflow.errors import ExitCode

KVFLOW = (sys.executable, "-c", "from kvflow.cli.app import main; main()")
# Makes a terminal the controlling one of a session of its own, as a terminal window does.
IN_TERMINAL = (
    sys.executable,
    "-c",
    "import os, sys; os.login_tty(int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])",
)


class Kvflow:
    """A `kvflow serve` of the stand-in for SGLang, on a port of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "model").mkdir()
        self.started: list[subprocess.Popen[str]] = []

    def command(self, *words: str) -> list[str]:
        common = ["--device", "cpu", "--model", str(self.folder / "model")]
        return [*KVFLOW, "serve", *common, "--port", str(self.port), *words]

    def environ(self, behaviour: str = "serve", **more: str) -> dict[str, str]:
        return fake_environment(self.folder, behaviour, **more)

    def start(self, *words: str, behaviour: str = "serve", **more: str) -> "subprocess.Popen[str]":
        with (self.folder / "stderr").open("w") as stderr:
            process = subprocess.Popen(
                self.command(*words),
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=self.environ(behaviour, **more),
                text=True,
            )
        self.started.append(process)
        return process

    def ready(self, *words: str, behaviour: str = "serve") -> "subprocess.Popen[str]":
        process = self.start(*words, behaviour=behaviour)
        assert first_line(process.stdout) == self.url, self.stderr
        return process

    def run(self, *words: str, behaviour: str = "serve", **more: str) -> tuple[int, str]:
        """Run to the end; the exit status and what came on stdout."""
        process = self.start(*words, behaviour=behaviour, **more)
        stdout, _ = process.communicate(timeout=PATIENCE_S)
        return process.returncode, stdout

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    @property
    def pid(self) -> int:
        """Of kvflow itself, once it serves."""
        [state] = self.state_files
        return int(json.loads(state.read_text())["pid"])

    @property
    def log(self) -> str:
        [log] = (self.folder / "state" / "kvflow" / "log").iterdir()
        return log.read_text()

    @property
    def below(self) -> list[psutil.Process]:
        return processes_listed_in(self.folder / "pids")

    @property
    def state_files(self) -> list[Path]:
        return list((self.folder / "state" / "kvflow").glob("*/servers/*"))


def first_line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline().rstrip("\n")


@pytest.fixture
def kvflow(tmp_path: Path) -> Iterator[Kvflow]:
    made = Kvflow(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.wait(PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()


def test_serve_healthy_prints_the_url_and_what_to_type_next(kvflow: Kvflow) -> None:
    recipe = write_recipe(kvflow.folder, {"a": {}})

    kvflow.ready("--recipe", str(recipe))

    wait_until(lambda: "recipe graph" in kvflow.stderr, "the next commands")
    assert f"next: kvflow run {recipe} {kvflow.url}\n" in kvflow.stderr
    assert f"kvflow recipe graph {recipe}\n" in kvflow.stderr
    assert re.search(r"^checking +\d+\.\d s$", kvflow.stderr, re.MULTILINE)
    assert re.search(r"^ready after \d+ s", kvflow.stderr, re.MULTILINE)
    assert "\x1b" not in kvflow.stderr


def test_serve_json_prints_the_state_that_others_find(kvflow: Kvflow) -> None:
    process = kvflow.start("--json")

    printed = json.loads(first_line(process.stdout))

    assert printed.pop("schema_version") == 1
    assert printed["pid"] == process.pid
    assert printed["url"] == kvflow.url
    [path] = kvflow.state_files
    kept = json.loads(path.read_text())
    assert {**kept, "started_at": 0} == {**printed, "started_at": 0}


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_serve_first_signal_ends_the_server_in_peace(
    kvflow: Kvflow, number: signal.Signals, status: int
) -> None:
    process = kvflow.ready()
    below = kvflow.below

    process.send_signal(number)

    assert process.wait(PATIENCE_S) == status
    assert not still_running(below)
    assert not kvflow.state_files
    assert "Gracefully exiting" in kvflow.log


def test_serve_second_signal_ends_everything_at_once(kvflow: Kvflow) -> None:
    process = kvflow.ready(behaviour="stubborn")
    below = kvflow.below
    process.send_signal(signal.SIGINT)
    wait_until(lambda: "Ctrl-C again" in kvflow.stderr, "the first signal's answer")

    process.send_signal(signal.SIGINT)

    assert process.wait(PATIENCE_S) == ExitCode.INTERRUPTED
    assert "ending SGLang at once" in kvflow.stderr
    assert not still_running(below)
    assert not kvflow.state_files


def test_serve_whose_stdout_is_gone_serves_on(kvflow: Kvflow) -> None:
    process = kvflow.start()
    assert process.stdout is not None
    process.stdout.close()
    wait_until(lambda: "next: kvflow run" in kvflow.stderr, "the next commands")

    process.send_signal(signal.SIGTERM)

    assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert "Traceback" not in kvflow.stderr


def test_serve_warm_that_cannot_be_warmed_says_so_and_serves(kvflow: Kvflow) -> None:
    recipe = write_recipe(kvflow.folder, {"a": {}})

    kvflow.ready("--recipe", str(recipe), "--warm")

    step = r"(?m)^warming a, 1 of 1 +failed after \d+\.\d s\n"
    assert re.search(step + "warning: not every prefix is warm: warming a: ", kvflow.stderr)


def test_serve_killed_leaves_no_process_and_a_file_that_is_seen_through(kvflow: Kvflow) -> None:
    process = kvflow.ready()
    below = kvflow.below

    process.kill()
    process.wait(PATIENCE_S)

    wait_until(lambda: not still_running(below), "the end of SGLang")
    assert kvflow.state_files
    find = "from kvflow.engine.state import running_servers; print(running_servers())"
    found = subprocess.check_output([sys.executable, "-c", find], env=kvflow.environ(), text=True)
    assert found == "[]\n"
    assert not kvflow.state_files


def test_serve_signal_during_the_start_leaves_nothing(kvflow: Kvflow) -> None:
    process = kvflow.start(behaviour="mute")
    below = kvflow.below

    process.send_signal(signal.SIGINT)

    assert process.wait(PATIENCE_S) == ExitCode.INTERRUPTED
    assert not still_running(below)


def test_serve_killed_during_the_start_leaves_nothing(kvflow: Kvflow) -> None:
    process = kvflow.start(behaviour="mute")
    below = kvflow.below

    process.kill()

    wait_until(lambda: not still_running(below), "the end of SGLang")


@pytest.fixture
def terminal(kvflow: Kvflow) -> Iterator[Callable[[], tuple["subprocess.Popen[bytes]", int]]]:
    ends: list[int] = []

    def open_one() -> tuple["subprocess.Popen[bytes]", int]:
        ours, theirs = pty.openpty()
        command = [*IN_TERMINAL, str(theirs), *kvflow.command()]
        process = subprocess.Popen(command, env=kvflow.environ(TERM="xterm"), pass_fds=[theirs])
        os.close(theirs)
        ends.append(ours)
        wait_until(lambda: kvflow.state_files, "the server")
        return process, ours

    yield open_one
    for end in ends:
        os.close(end)


def test_serve_ctrl_c_in_a_terminal_reaches_kvflow_alone(
    kvflow: Kvflow, terminal: Callable[[], tuple["subprocess.Popen[bytes]", int]]
) -> None:
    process, keyboard = terminal()
    below = kvflow.below

    os.write(keyboard, b"\x03")

    assert process.wait(PATIENCE_S) == ExitCode.INTERRUPTED
    assert not still_running(below)
    assert b"starting SGLang" in os.read(keyboard, 65_536)
    assert "Gracefully exiting" in kvflow.log
    assert "KeyboardInterrupt" not in kvflow.log


def test_serve_terminal_closed_ends_the_server_in_peace(
    kvflow: Kvflow, terminal: Callable[[], tuple["subprocess.Popen[bytes]", int]]
) -> None:
    process, keyboard = terminal()
    below = kvflow.below
    os.dup2(os.open(os.devnull, os.O_RDWR), keyboard)  # closes the terminal, keeps the number

    assert process.wait(PATIENCE_S) == 128 + signal.SIGHUP
    assert not still_running(below)
    assert "Gracefully exiting" in kvflow.log


def test_serve_top_shows_the_screen_and_q_ends_both(kvflow: Kvflow) -> None:
    command = shlex.join(kvflow.command("--top"))
    with Terminal(kvflow.folder, command, kvflow.environ(TERM="xterm-256color")) as terminal:
        terminal.wait_for("radix tree")
        below = kvflow.below

        terminal.press("q")

        terminal.wait_for("ended with 0")
    assert not still_running(below)
    assert not kvflow.state_files


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_top_that_is_told_to_end_ends_the_server_in_peace(
    kvflow: Kvflow, number: signal.Signals
) -> None:
    command = shlex.join(kvflow.command("--top"))
    with Terminal(kvflow.folder, command, kvflow.environ(TERM="xterm-256color")) as terminal:
        terminal.wait_for("radix tree")
        below = kvflow.below

        os.kill(kvflow.pid, number)

        terminal.wait_for(f"ended with {128 + number}")
    assert not still_running(below)
    assert not kvflow.state_files
    assert "Gracefully exiting" in kvflow.log


def test_serve_top_whose_terminal_is_closed_ends_the_server_in_peace(kvflow: Kvflow) -> None:
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [*IN_TERMINAL, str(its), *kvflow.command("--top")],
        env=kvflow.environ(TERM="xterm-256color"),
        pass_fds=[its],
    )
    os.close(its)
    seen = b""
    while b"radix tree" not in seen:
        seen += os.read(ours, 65_536)
    below = kvflow.below

    os.close(ours)

    assert process.wait(PATIENCE_S) == 128 + signal.SIGHUP
    assert not still_running(below)
    assert not kvflow.state_files
    assert "Gracefully exiting" in kvflow.log


def test_serve_top_whose_screen_is_killed_goes_on_serving(kvflow: Kvflow) -> None:
    command = shlex.join(kvflow.command("--top"))
    with Terminal(kvflow.folder, command, kvflow.environ(TERM="xterm-256color")) as terminal:
        terminal.wait_for("radix tree")
        below = kvflow.below
        [screen] = [one for one in psutil.Process(kvflow.pid).children() if "top" in one.cmdline()]

        screen.kill()

        terminal.wait_for("the screen has failed, the server goes on")
        assert not terminal.is_in_full_screen
        assert urllib.request.urlopen(f"{kvflow.url}/health", timeout=PATIENCE_S).status == 200
        terminal.press("C-c")
        terminal.wait_for("ended with 130")
    assert not still_running(below)


def test_serve_top_whose_server_dies_says_why(kvflow: Kvflow) -> None:
    command = shlex.join(kvflow.command("--top"))
    environ = kvflow.environ("crash", TERM="xterm-256color")
    with Terminal(kvflow.folder, command, environ) as terminal:
        terminal.wait_for("radix tree")
        with pytest.raises(RemoteDisconnected):
            urllib.request.urlopen(f"{kvflow.url}/crash", timeout=PATIENCE_S)
        terminal.wait_for("ended with 1")
        assert "error: SGLang has ended (ended by SIGKILL)" in terminal.screen()


def test_serve_top_that_cannot_be_shown_starts_nothing(kvflow: Kvflow) -> None:
    settings = kvflow.folder / "config" / "kvflow"
    settings.mkdir(parents=True)
    (settings / "top.yaml").write_text("keymap: {no.such.key: x}\n")
    environ = kvflow.environ(TERM="xterm-256color", XDG_CONFIG_HOME=str(settings.parent))
    with Terminal(kvflow.folder, shlex.join(kvflow.command("--top")), environ) as terminal:
        terminal.wait_for("ended with 2")
        assert "no.such.key" in terminal.screen()
    assert not (kvflow.folder / "pids").exists()


def test_serve_whose_narration_nobody_reads_still_drains(kvflow: Kvflow) -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        kvflow.command(), stdout=subprocess.PIPE, stderr=writing, env=kvflow.environ(), text=True
    )
    kvflow.started.append(process)
    os.close(writing)
    assert first_line(process.stdout) == kvflow.url
    below = kvflow.below

    os.close(reading)
    process.send_signal(signal.SIGINT)

    assert process.wait(PATIENCE_S) == ExitCode.INTERRUPTED
    assert not still_running(below)
    assert "Gracefully exiting" in kvflow.log


def test_serve_sglang_that_refuses_a_flag_ends_as_three_lines(kvflow: Kvflow) -> None:
    status, stdout = kvflow.run("--", "--bogus", "3")

    assert (status, stdout) == (ExitCode.USAGE, "")
    assert "error: SGLang does not know --bogus 3\n  why: " in kvflow.stderr
    assert "\n hint: python -m sglang.launch_server --help" in kvflow.stderr
    assert "Traceback" not in kvflow.stderr


def test_serve_sglang_that_fails_ends_with_what_it_said(kvflow: Kvflow) -> None:
    said = "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."

    status, _ = kvflow.run(behaviour="fail", FAKE_SGLANG_LOG=said, FAKE_SGLANG_EXIT="1")

    assert status == ExitCode.FAILURE
    assert "error: no memory is left for the KV cache\n" in kvflow.stderr
    assert not kvflow.state_files


def test_serve_sglang_that_dies_later_ends_kvflow_too(kvflow: Kvflow) -> None:
    process = kvflow.ready(behaviour="crash")
    below = kvflow.below

    with pytest.raises(RemoteDisconnected):
        urllib.request.urlopen(f"{kvflow.url}/crash", timeout=PATIENCE_S)

    assert process.wait(PATIENCE_S) == ExitCode.FAILURE
    assert "error: SGLang has ended (ended by SIGKILL)" in kvflow.stderr
    assert not still_running(below)
    assert not kvflow.state_files


def test_serve_not_ready_in_time_gives_up_and_leaves_nothing(kvflow: Kvflow) -> None:
    status, _ = kvflow.run("--timeout", "1", behaviour="hang")

    assert status == ExitCode.FAILURE
    assert "error: SGLang is not ready after 1 s" in kvflow.stderr
    assert not still_running(kvflow.below)


def test_serve_verbose_shows_the_log_without_the_key(kvflow: Kvflow) -> None:
    key = kvflow.folder / "key"
    key.write_text("sesame\n")

    kvflow.ready("--verbose", "--api-key-file", str(key))

    assert "Load weight begin" in kvflow.stderr
    assert "'api_key': '***'" in kvflow.stderr
    assert "sesame" not in kvflow.stderr


def test_serve_log_file_is_where_it_is_asked_for(kvflow: Kvflow) -> None:
    kvflow.ready("--log-file", str(kvflow.folder / "mine.log"))

    assert "Load weight begin" in (kvflow.folder / "mine.log").read_text()


def test_serve_typed_port_is_the_one_that_is_watched(kvflow: Kvflow) -> None:
    kvflow.url = f"http://127.0.0.1:{free_port()}"

    kvflow.ready("--", f"--port={kvflow.url.rpartition(':')[2]}")


def test_serve_port_in_use_is_said_before_anything_is_started(kvflow: Kvflow) -> None:
    kvflow.ready()
    pids = kvflow.folder / "pids"
    pids.unlink()

    status, _ = kvflow.run()

    assert status == ExitCode.FAILURE
    assert f"error: port {kvflow.port} is in use\n" in kvflow.stderr
    assert not pids.exists()
