from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvflow.engine.launch import log


def test_create_leaves_an_empty_log_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "sglang.log"
    path.parent.mkdir()
    path.write_text("of the last start")
    path.chmod(0o644)

    with open(log.create(path), "w") as file:
        file.write("now")

    assert path.read_text() == "now"
    assert path.stat().st_mode & 0o777 == 0o600


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
