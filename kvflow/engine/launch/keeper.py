"""The process between kvflow and SGLang that leaves nothing behind, whoever dies first.

A script of its own (`python -I -S keeper.py COMMAND...`), standard library only, so that it costs
a few milliseconds and cannot fail for want of a package.

Why it is needed: SGLang's workers ask the kernel to be killed with their parent
(PR_SET_PDEATHSIG, sglang/srt/utils/common.py, `kill_itself_when_parent_died`), but only once they
have imported everything, 10 to 20 s after they were spawned. Until then, and for compilers and
other helpers always, a dead parent means an orphan. The keeper is their subreaper: every orphan
below it becomes its child, so that it can find and end them all.

Its protocol:
    standard input ends     kvflow is gone, or wants the end at once: everything below is killed.
    SIGTERM                 is passed on to SGLang's main process, which drains and ends.
    exit status             SGLang's, and 128 + n where signal n ended it.

Linux only, as SGLang is.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_NOT_STARTED = 127


def main(command: list[str]) -> int:
    """Run a command and return its exit status once nothing below this process is left."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wakeups = _signals_as_bytes()
    child = _start(command)
    ended: dict[int, int] = {}
    _watch(child, wakeups, ended)
    _end_all(ended)
    code = os.waitstatus_to_exitcode(ended[child])
    return 128 - code if code < 0 else code


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _signals_as_bytes() -> int:
    """A descriptor from which the number of each signal that arrives can be read."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    # SIGQUIT: what an orphaned SGLang worker sends to its parent when it fails. Handlers and not
    # SIG_IGN, because the command would inherit the latter.
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)
    return reading


def _start(command: list[str]) -> int:
    keeper = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        # If the keeper itself is killed, SGLang's main process goes too, and its workers with it.
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == keeper:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error}\n".encode())
    os._exit(_NOT_STARTED)


def _watch(child: int, wakeups: int, ended: dict[int, int]) -> None:
    """Wait until the child or standard input ends; collect the wait status of what has ended."""
    while True:
        readable, _, _ = select.select([0, wakeups], [], [])
        if wakeups in readable and signal.SIGTERM in os.read(wakeups, 512):
            os.kill(child, signal.SIGTERM)
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                ended[found[0]] = found[1]
        if child in ended or (0 in readable and not os.read(0, 1)):
            return


def _end_all(ended: dict[int, int]) -> None:
    """Kill everything below and wait until it is gone.

    The children of a killed process become ours, so this goes on until there are none.
    """
    while True:
        for pid in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return
        ended[pid] = status


def _children() -> list[int]:
    me = os.getpid()
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _parent(name) == me]


def _parent(pid: str) -> int | None:
    """The parent of a process, from the field after its name, which may hold any character."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
