import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
from support.processes import wait_until

from kvflow.engine.processes import Listener, listeners, start_ticks


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield int(server.getsockname()[1])


def test_listeners_are_told_with_their_address_and_process(listening: int) -> None:
    assert listeners(listening) == [Listener("127.0.0.1", os.getpid())]


def test_listeners_of_a_port_are_not_those_who_are_only_connected(listening: int) -> None:
    with socket.create_connection(("127.0.0.1", listening)) as connected:
        assert listeners(connected.getsockname()[1]) == []


def test_listeners_of_a_machine_that_does_not_tell_are_none(
    listening: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(kind: str) -> None:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", refuse)
    assert listeners(listening) == []


def test_start_ticks_of_a_process_stay_and_tell_it_from_a_later_one() -> None:
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        first = start_ticks(process.pid)
        process.kill()
    mine = start_ticks(os.getpid())
    assert first is not None
    assert mine is not None
    assert first > mine == start_ticks(os.getpid())


def test_start_ticks_are_read_behind_a_name_of_any_characters() -> None:
    script = "import ctypes; ctypes.CDLL(None).prctl(15, b') R 1 (', 0, 0, 0); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as process:
        before = start_ticks(process.pid)
        wait_until(lambda: psutil.Process(process.pid).name() == ") R 1 (", "its name")
        after = start_ticks(process.pid)
        process.kill()
    assert after == before


def test_start_ticks_of_no_process_are_none() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    assert start_ticks(process.pid) is None
