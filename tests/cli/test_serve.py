"""`kvflow serve` as a person meets it: a process, its two streams, its signals and its status."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from http.client import RemoteDisconnected

import pytest
from support.launches import free_port
from support.processes import PATIENCE_S, still_running, wait_until
from support.recipes import write_recipe
from support.serve import IN_TERMINAL, Kvflow, first_line

from kvflow.errors import ExitCode


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
    status, _ = kvflow.run("--timeout", "5", behaviour="hang")

    assert status == ExitCode.FAILURE
    assert "error: SGLang is not ready after 5 s" in kvflow.stderr
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
