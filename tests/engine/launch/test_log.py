import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvflow.engine.here import state_folder
from kvflow.engine.launch import log

DEAD = 2**22 + 1  # beyond what Linux gives to a process


def test_create_leaves_an_empty_log_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "sglang.log"
    path.parent.mkdir()
    path.write_text("of the last start")
    path.chmod(0o644)

    with open(log.create(path), "w") as file:
        file.write("now")

    assert path.read_text() == "now"
    assert path.stat().st_mode & 0o777 == 0o600


def test_create_keeps_the_log_of_the_last_start_beside_it(tmp_path: Path) -> None:
    path, before = tmp_path / "sglang.log", tmp_path / "sglang.log.1"
    path.write_text("of the last start")
    before.write_text("of the one before it")

    os.close(log.create(path))

    assert path.read_text() == ""
    assert before.read_text() == "of the last start"


def test_create_log_that_is_a_link_empties_what_it_stands_for(tmp_path: Path) -> None:
    path, target = tmp_path / "sglang.log", tmp_path / "elsewhere"
    target.write_text("of the last start")
    path.symlink_to(target)

    os.close(log.create(path))

    assert path.is_symlink()
    assert target.read_text() == ""


def test_create_log_that_cannot_be_kept_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "sglang.log"
    path.write_text("of the last start")
    (tmp_path / "sglang.log.1" / "in the way").mkdir(parents=True)

    os.close(log.create(path))

    assert path.read_text() == ""


def test_folder_is_one_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    assert log.folder().is_relative_to(state_folder())


def test_folder_of_process_is_another_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    ours = log.folder_of_process("bench")
    monkeypatch.setattr(os, "getpid", lambda: DEAD)

    assert log.folder_of_process("bench") != ours


def test_folder_of_process_removes_those_of_ended_ones_but_the_latest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    benches = [f"bench-{DEAD + age}" for age in range(6)]
    names = [f"bench-{os.getppid()}", str(DEAD), *benches, "bench-mine"]
    for age, name in enumerate(names):
        (log.folder() / name).mkdir(parents=True)
        (log.folder() / name / "hicache.log").touch()
        os.utime(log.folder() / name, (age, age))

    log.folder_of_process("bench")

    left = {path.name for path in log.folder().iterdir()}
    assert left == {*names} - {*benches[:2]}


def test_tail_long_log_is_its_end(tmp_path: Path) -> None:
    path = tmp_path / "sglang.log"
    path.write_text("x" * 300_000 + "the end")

    assert log.tail(path).endswith("xthe end")
    assert len(log.tail(path)) == 128 * 1024


@given(text=st.text("ab\né", max_size=40), cuts=st.lists(st.integers(0, 40), max_size=5))
def test_follower_text_in_any_pieces_gives_its_complete_lines_once(
    tmp_path_factory: pytest.TempPathFactory, text: str, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("log") / "sglang.log"
    path.touch()
    follower = log.Follower(path)
    raw, seen, begin = text.encode(), [], 0

    with path.open("ab", buffering=0) as file:
        for end in [*sorted(cuts), len(raw)]:
            file.write(raw[begin:end])
            begin = max(begin, end)
            seen += follower.lines()
    follower.close()

    assert seen == text.split("\n")[:-1]
