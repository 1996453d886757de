"""A server with the stand-in for SGLang: real processes, real signals, real sockets."""

import dataclasses
import http.server
import os
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import RemoteDisconnected
from pathlib import Path

import psutil
import pytest
from support.launches import fake_environment, fake_launch, free_port
from support.processes import processes_listed_in, still_running, wait_until

from kvflow.engine.launch import Phase, Progress, Server
from kvflow.errors import KvflowError

Start = Callable[..., Server]


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as running:

        def run(behaviour: str = "serve", **more: object) -> Server:
            environ = fake_environment(tmp_path, behaviour, **more.pop("environ", {}))
            launch = fake_launch(more.pop("port", free_port()), **more)
            return running.enter_context(Server(launch, tmp_path / "sglang.log", environ))

        yield run


def below(tmp_path: Path) -> list[psutil.Process]:
    return processes_listed_in(tmp_path / "pids")


def test_progress_of_a_start_goes_through_the_phases_and_ends_healthy(start: Start) -> None:
    steps = list(start().progress(30))

    assert [step.healthy for step in steps] == [False] * (len(steps) - 1) + [True]
    assert steps[-1].phase is Phase.WARMING_UP
    lines = [line for step in steps for line in step.lines]
    assert "[2026-01-01 00:00:01] Load weight begin. avail mem=20.00 GB" in lines


def test_progress_server_that_never_answers_well_is_given_up_in_time(start: Start) -> None:
    with pytest.raises(KvflowError, match=r"not ready after 5 s \(it was warming up\)"):
        for _ in start("hang").progress(5):
            pass


def test_progress_somebody_else_on_the_port_is_not_taken_for_sglang(start: Start) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answered.set()
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Be quiet."""

    answered = threading.Event()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        steps: list[Progress] = []
        with pytest.raises(KvflowError, match="not ready"):
            steps.extend(start("mute", port=other.server_port).progress(3))
        other.shutdown()

    assert answered.is_set()
    assert not [step for step in steps if step.healthy]


def test_progress_sglang_that_fails_raises_what_its_log_says(start: Start, tmp_path: Path) -> None:
    failing = start("fail", environ={"FAKE_SGLANG_LOG": "ValueError: odd", "FAKE_SGLANG_EXIT": "3"})
    processes = below(tmp_path)

    with pytest.raises(KvflowError) as caught:
        for _ in failing.progress(30):
            pass

    assert caught.value.what == "SGLang has ended (exit status 3)"
    assert caught.value.why == "ValueError: odd"
    assert str(tmp_path / "sglang.log") in caught.value.hint
    assert not still_running(processes)


def test_failure_server_that_was_killed_names_the_signal(start: Start, tmp_path: Path) -> None:
    server = start("crash")
    list(server.progress(30))
    processes = below(tmp_path)

    with pytest.raises(RemoteDisconnected):
        urllib.request.urlopen(f"{server.launch.url}/crash", timeout=30)

    assert server.wait(30)
    assert "SIGKILL" in server.failure().what
    assert not still_running(processes)


def test_ask_to_end_lets_sglang_end_in_peace(start: Start, tmp_path: Path) -> None:
    server = start()
    list(server.progress(30))
    processes = below(tmp_path)

    server.ask_to_end()

    assert server.wait(30)
    assert "Gracefully exiting" in server.log.read_text()
    assert not still_running(processes)


def test_kill_server_that_does_not_listen_leaves_nothing(start: Start, tmp_path: Path) -> None:
    server = start("stubborn")
    list(server.progress(30))
    processes = below(tmp_path)
    server.ask_to_end()
    wait_until(lambda: "I am busy" in server.log.read_text(), "SIGTERM")
    assert not server.ended

    server.kill()

    assert server.ended
    assert not still_running(processes)


def test_kill_before_the_start_is_over_leaves_nothing(start: Start, tmp_path: Path) -> None:
    server = start("mute")
    processes = below(tmp_path)

    server.kill()

    assert not still_running(processes)


def test_kill_after_the_keeper_was_killed_leaves_nothing(start: Start, tmp_path: Path) -> None:
    server = start()
    list(server.progress(30))
    processes = below(tmp_path)
    psutil.Process(processes[0].pid).parent().kill()
    wait_until(lambda: server.ended, "the end of the keeper")

    server.kill()

    assert not still_running(processes)
    assert "keeper" in server.failure().what


def test_server_runs_in_a_session_that_no_terminal_reaches(start: Start, tmp_path: Path) -> None:
    start("mute")

    sessions = {os.getsid(process.pid) for process in below(tmp_path)}
    assert len(sessions) == 1
    assert os.getsid(0) not in sessions


def test_server_private_files_live_as_long_as_it(tmp_path: Path) -> None:
    secret = tmp_path / "deep" / "key.yaml"
    launch = fake_launch(free_port(), files={secret: "sesame"})

    with Server(launch, tmp_path / "sglang.log", fake_environment(tmp_path, "mute")):
        assert secret.read_text() == "sesame"
        assert secret.stat().st_mode & 0o777 == 0o600

    assert not secret.exists()


def test_server_on_the_port_of_one_that_still_starts_is_refused_and_touches_nothing(
    tmp_path: Path,
) -> None:
    secret, log, environ = tmp_path / "key.yaml", tmp_path / "log", fake_environment(tmp_path)
    launch = fake_launch(free_port(), files={secret: "first"})
    second = dataclasses.replace(launch, files={secret: "second"})

    with Server(launch, log, {**environ, "FAKE_SGLANG": "mute"}):
        wait_until(lambda: "server_args" in log.read_text(), "the first lines")
        with pytest.raises(KvflowError, match=f"port {launch.port} is in use") as caught:
            Server(second, log, environ)
        assert secret.read_text() == "first"
        assert "server_args" in log.read_text()

    assert f"kvflow starts a server there (pid {os.getpid()})" in caught.value.why
    with Server(second, log, environ):
        assert secret.read_text() == "second"


def test_server_that_cannot_write_its_log_leaves_no_private_file(tmp_path: Path) -> None:
    secret = tmp_path / "key.yaml"
    launch = fake_launch(free_port(), files={secret: "sesame"})

    with pytest.raises(KvflowError, match=f"cannot write {tmp_path}") as caught:
        Server(launch, tmp_path, fake_environment(tmp_path))

    assert caught.value.why == "Is a directory"
    assert not secret.exists()
