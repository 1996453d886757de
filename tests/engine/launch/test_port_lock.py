import errno
import fcntl
import os
from pathlib import Path

import pytest

from kvflow.engine.here import state_folder
from kvflow.engine.launch import port_lock
from kvflow.errors import KvflowError

PORT = 30000


@pytest.fixture(autouse=True)
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the lock, in a state folder of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return state_folder() / "launch" / f"{PORT}.lock"


def test_held_port_is_refused_with_who_has_it_and_what_to_do() -> None:
    with port_lock.held(PORT), pytest.raises(KvflowError) as caught, port_lock.held(PORT):
        pass

    assert caught.value.what == f"port {PORT} is in use"
    assert caught.value.why == f"kvflow starts a server there (pid {os.getpid()})"
    assert (
        caught.value.hint == f"end it with kill {os.getpid()}, or take another: --port {PORT + 1}"
    )


def test_held_other_port_is_free() -> None:
    with port_lock.held(PORT), port_lock.held(PORT + 1):
        pass


def test_held_leaves_no_file_and_lets_the_next_one_in(lock: Path) -> None:
    for _ in range(2):
        with port_lock.held(PORT):
            assert lock.exists()
        assert not lock.exists()


def test_held_port_of_a_process_that_was_killed_is_free(lock: Path) -> None:
    lock.parent.mkdir(parents=True)
    lock.write_text("4194305")

    with port_lock.held(PORT):
        assert lock.read_text() == str(os.getpid())


def test_held_file_that_its_holder_removes_meanwhile_is_not_taken_for_the_lock(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, removed = fcntl.flock, []

    def removing(file: int, how: int) -> None:
        flock(file, how)
        if not removed:
            removed.append(lock.unlink())

    monkeypatch.setattr(fcntl, "flock", removing)

    with port_lock.held(PORT), pytest.raises(KvflowError), port_lock.held(PORT):
        pass


def test_held_on_a_file_system_without_locks_keeps_no_server_from_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refusing(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refusing)

    with port_lock.held(PORT):
        pass
