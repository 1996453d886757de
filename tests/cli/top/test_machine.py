"""Whether a server runs on the machine of the console."""

import json
import os
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from support.frame_server import FrameServer
from support.frames import busy_frame
from support.top_command import kvflow_top, started

from kvflow.cli import top_machine
from kvflow.cli.top_machine import Place, ServerSampler, find, machine_of

HERE = "http://127.0.0.1:9"


def now_running(monkeypatch: pytest.MonkeyPatch, *pids: int, url: str = HERE) -> None:
    """Servers that kvflow serve runs, by the processes that run them."""
    servers = [started(url, pid) for pid in pids]
    monkeypatch.setattr(top_machine, "running_servers", lambda: servers)


def ended_process() -> int:
    """The number of a process that is no more."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_server_that_kvflow_runs_is_found_however_loopback_is_spelled(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    now_running(monkeypatch, 1234)
    assert find(f"http://{host}:9") == Place(1234)


def test_server_that_listens_here_is_found_without_being_told_of() -> None:
    with FrameServer([busy_frame()]).running() as server:
        port = urlsplit(server.url).port
        assert find(server.url) == find(f"http://localhost:{port}") == Place(os.getpid())


def test_server_behind_a_tunnel_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_machine, "_name", lambda pid: "ssh")
    with FrameServer([busy_frame()]).running() as server:
        sample = ServerSampler(server.url).sample()
        told = json.loads(kvflow_top(server.url, "--json").stdout)
    assert (sample.host, sample.gpus) == (None, ())
    assert sample.why_no_gpu == "the server runs elsewhere: ssh listens on this port"
    assert told["machine"] is None


def test_machine_is_read_once_a_server_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_machine, "_AGAIN_S", 0.0)
    sampler = ServerSampler(HERE)
    before = sampler.sample()
    now_running(monkeypatch, os.getpid())
    after = sampler.sample()
    assert (before.host, before.why_no_gpu) == (None, "no such server is found on this machine")
    assert after.host is not None
    assert os.getpid() in [process.pid for process in after.host.processes]


def test_server_that_was_started_anew_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_machine, "_AGAIN_S", 0.0)
    now_running(monkeypatch, ended_process())
    sampler = ServerSampler(HERE)
    now_running(monkeypatch, os.getpid())
    host = sampler.sample().host
    assert host is not None
    assert os.getpid() in [process.pid for process in host.processes]


def test_machine_goes_on_being_read_while_its_server_is_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(top_machine, "_AGAIN_S", 0.0)
    now_running(monkeypatch, ended_process())
    sampler = ServerSampler(HERE)
    now_running(monkeypatch)
    assert sampler.sample().host is not None


def test_machine_of_a_server_elsewhere_is_none() -> None:
    assert machine_of("http://gpu-box.example.org:30000") is None


def test_machine_of_a_server_of_this_machine_is_there_at_any_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = "http://192.0.2.7:30000"
    now_running(monkeypatch, os.getpid(), url=url)
    assert machine_of(url) is not None
