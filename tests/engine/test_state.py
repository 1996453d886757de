import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import msgspec
import psutil
import pytest
from support.processes import wait_until

from kvflow.engine import here, state
from kvflow.engine.processes import start_ticks
from kvflow.engine.state import ServerState, announced, running_servers
from kvflow.errors import KvflowError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def of_this_process(port: int = 30000, **more: object) -> ServerState:
    values: dict[str, object] = {
        "url": f"http://127.0.0.1:{port}",
        "pid": os.getpid(),
        "created": psutil.Process().create_time(),
        "start_ticks": start_ticks(os.getpid()),
        "started_at": 1000.0,
        "device": "cpu",
        "mode": "off",
        "model": "m",
        "recipe": "/flows/peer.yaml",
        **more,
    }
    return ServerState(**values)


def leave_behind(server: ServerState) -> Path:
    """The file of a server whose kvflow was killed."""
    with announced(server) as path:
        content = path.read_bytes()
    path.write_bytes(content)
    return path


def test_announced_server_is_found_until_the_end() -> None:
    server = of_this_process()

    with announced(server):
        assert running_servers() == [server]

    assert running_servers() == []


def test_announced_error_inside_removes_the_file_too() -> None:
    with pytest.raises(RuntimeError), announced(of_this_process()) as path:
        raise RuntimeError

    assert not path.exists()


def test_announced_file_is_whole_and_for_its_owner_alone() -> None:
    with announced(of_this_process()) as path:
        assert [path] == list(path.parent.iterdir())
        assert path.name == "30000.json"
        assert path.stat().st_mode & 0o777 == 0o600
        assert json.loads(path.read_bytes())["url"] == "http://127.0.0.1:30000"


def test_announced_write_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)

    with pytest.raises(KvflowError) as caught, announced(of_this_process()):
        pass

    assert caught.value.what == f"cannot write {state.folder() / '30000.json'}"
    assert caught.value.why == os.strerror(errno.ENOSPC)
    assert list(state.folder().iterdir()) == []


def test_running_servers_latest_comes_first() -> None:
    early, late = of_this_process(1), of_this_process(2, started_at=2000.0)

    with announced(early), announced(late):
        assert running_servers() == [late, early]


def test_running_servers_of_a_process_that_is_gone_are_removed() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    path = leave_behind(of_this_process(pid=process.pid))

    assert running_servers() == []
    assert not path.exists()


def test_running_servers_number_used_by_another_process_is_not_the_same() -> None:
    path = leave_behind(of_this_process(start_ticks=7))

    assert running_servers() == []
    assert not path.exists()


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0])
def test_running_servers_are_found_after_the_clock_was_set(
    monkeypatch: pytest.MonkeyPatch, step_s: float
) -> None:
    server = of_this_process()
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: server.created + step_s)
    monkeypatch.setattr(time, "time", lambda: server.created + step_s)

    with announced(server) as path:
        assert running_servers() == [server]
        assert path.exists()


@pytest.mark.parametrize(
    ("words", "is_ours"),
    [(["/bin/kvflow", "serve"], True), (["-m", "kvflow.cli.app"], True), ([], False)],
)
def test_running_servers_written_by_an_older_version_are_known_by_their_command(
    words: list[str], is_ours: bool
) -> None:
    command = [sys.executable, "-c", "input()", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        wait_until(lambda: psutil.Process(process.pid).cmdline() == command, "its own command")
        older = of_this_process(pid=process.pid, start_ticks=None)
        leave_behind(older)
        found = running_servers()
        process.kill()

    assert found == ([older] if is_ours else [])


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"url": 1}', b'{"pid": 1}'])
def test_running_servers_unreadable_file_is_left_alone(content: bytes) -> None:
    state.folder().mkdir(parents=True)
    path = state.folder() / "1.json"
    path.write_bytes(content)

    assert running_servers() == []
    assert path.exists()


def test_running_servers_fields_of_a_later_version_are_passed_over() -> None:
    with announced(of_this_process()) as path:
        path.write_text(json.dumps({**json.loads(path.read_bytes()), "colour": "green"}))

        assert running_servers() == [of_this_process()]


def test_running_servers_without_any_folder_are_none() -> None:
    assert running_servers() == []


@pytest.mark.parametrize("elsewhere", ["another machine", "another container"])
def test_server_of_a_machine_that_shares_the_home_is_neither_shown_nor_forgotten(
    elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone_here = of_this_process(pid=1 << 22)
    with monkeypatch.context() as there:
        if elsewhere == "another machine":
            there.setattr(here.platform, "node", lambda: "other")
        else:
            there.setattr(here.os, "stat", lambda path: SimpleNamespace(st_ino=7))
        path = state.folder() / "30000.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(msgspec.json.encode(gone_here))

    assert running_servers() == []
    assert path.exists()
