import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from kvflow.telemetry.host import PsutilHost


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing until its stdin is closed."""
    program = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE) as process:
        yield process


def test_host_tells_this_machines_memory_and_cores() -> None:
    host = PsutilHost().read()
    assert host.memory_total_bytes == psutil.virtual_memory().total
    assert 0 < host.memory_available_bytes <= host.memory_total_bytes
    assert host.cpus == psutil.cpu_count()
    assert host.processes == ()


def test_cpu_use_is_unknown_at_first_and_known_then() -> None:
    probe = PsutilHost(os.getpid())
    first, second = probe.read(), probe.read()
    assert first.cpu is None
    assert second.cpu is not None
    assert [first.processes[0].cpu is None, second.processes[0].cpu is None] == [True, False]


def test_processes_of_the_server_are_it_and_what_it_started(
    child: subprocess.Popen[bytes],
) -> None:
    processes = PsutilHost(os.getpid()).read().processes
    assert processes[0].pid == os.getpid()
    assert processes[0].resident_bytes > 0
    assert child.pid in [process.pid for process in processes]


def test_process_that_has_ended_is_told_no_more(child: subprocess.Popen[bytes]) -> None:
    probe = PsutilHost(child.pid)
    assert len(probe.read().processes) == 1
    child.communicate()
    assert probe.read().processes == ()
