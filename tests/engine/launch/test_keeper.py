"""The keeper against real processes: whoever dies, and how, nothing is left below it."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from support.processes import processes_listed_in, still_running, wait_until

from kvflow.engine.launch import keeper

# Starts a child that starts a child and ends; tells all their numbers; then does as it is told.
FAMILY = """
import json, os, signal, subprocess, sys, time
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(sleep, start_new_session=True)
maker = "import subprocess, sys; n = subprocess.DEVNULL; "
maker += f"print(subprocess.Popen({sleep!r}, stdout=n, stderr=n).pid)"
orphan = int(subprocess.check_output([sys.executable, "-c", maker]))
with open(sys.argv[1] + ".new", "w") as file:
    json.dump([os.getpid(), child.pid, orphan], file)
os.rename(sys.argv[1] + ".new", sys.argv[1])
"""


Kept = tuple[subprocess.Popen[bytes], list[psutil.Process]]
Keep = Callable[[str], Kept]


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Keep]:
    started: list[subprocess.Popen[bytes]] = []

    def run(then: str) -> Kept:
        command = [sys.executable, "-c", FAMILY + then, str(tmp_path / "pids")]
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, *command],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        return process, processes_listed_in(tmp_path / "pids")

    yield run
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)


def test_keeper_child_ends_passes_its_status_on_and_ends_the_rest(keep: Keep) -> None:
    process, family = keep("sys.exit(7)")

    assert process.wait(30) == 7
    assert not still_running(family)


def test_keeper_child_killed_tells_the_signal_as_a_shell_does(keep: Keep) -> None:
    process, family = keep("os.kill(os.getpid(), signal.SIGKILL)")

    assert process.wait(30) == 128 + signal.SIGKILL
    assert not still_running(family)


def test_keeper_stdin_ends_kills_everything_at_once(keep: Keep) -> None:
    process, family = keep("signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)")
    assert process.stdin is not None

    process.stdin.close()

    assert process.wait(30) == 128 + signal.SIGKILL
    assert not still_running(family)


def test_keeper_sigterm_reaches_the_child_alone(keep: Keep) -> None:
    process, family = keep(
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3 + (child.poll() is not None)))\n"
        "open(sys.argv[1] + '.ready', 'w').close(); time.sleep(600)"
    )
    ready = Path(family[0].cmdline()[-1] + ".ready")
    wait_until(ready.exists, "the handler")

    process.terminate()

    assert process.wait(30) == 3
    assert not still_running(family)


def test_keeper_signals_of_a_terminal_or_an_orphan_are_not_its_own(keep: Keep) -> None:
    process, family = keep("time.sleep(600)")

    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        process.send_signal(number)
    process.terminate()

    assert process.wait(30) == 128 + signal.SIGTERM
    assert not still_running(family)


def test_keeper_killed_takes_the_child_with_it(keep: Keep) -> None:
    process, family = keep("time.sleep(600)")

    process.kill()

    wait_until(lambda: not still_running(family[:1]), "the end of the child")
    for orphan in still_running(family):  # the server's sweep ends these
        orphan.kill()


def test_keeper_command_that_is_not_there_says_so() -> None:
    command = [sys.executable, "-I", "-S", keeper.__file__, "/no/such/command"]

    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.wait(30) == 127
        assert process.stderr is not None
        assert b"cannot start /no/such/command" in process.stderr.read()
