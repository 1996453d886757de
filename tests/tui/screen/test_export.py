from datetime import datetime

import pytest
from support.top_scene import node

from kvflow.errors import KvflowError
from kvflow.tui.rows import Row
from kvflow.tui.screen.export import FIELDS, as_csv, new_path, write

NOW = datetime(2026, 1, 2, 3, 4, 5)


def test_new_path_is_named_for_the_moment_and_its_folder_is_made(tmp_path):
    path = new_path(tmp_path / "a" / "b", ".svg", NOW)
    assert path == tmp_path / "a" / "b" / "top-20260102-030405.svg"
    assert path.parent.is_dir()


def test_new_path_never_names_a_file_that_is_there(tmp_path):
    for name in ("top-20260102-030405.csv", "top-20260102-030405-2.csv"):
        (tmp_path / name).write_text("mine")
    assert new_path(tmp_path, ".csv", NOW).name == "top-20260102-030405-3.csv"


def test_new_path_in_a_folder_that_cannot_be_made_fails_with_its_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(KvflowError, match="file"):
        new_path(tmp_path / "file" / "x", ".csv", NOW)


def test_write_to_where_it_is_not_allowed_fails_with_the_path(tmp_path):
    with pytest.raises(KvflowError, match="absent"):
        write(tmp_path / "absent" / "x.csv", "text")


def test_as_csv_has_a_line_for_each_row_with_ghosts_told_apart():
    rows = [
        Row(node(7, agents=("a/b", "a/c"), last_access=12.0), 1, None, True, False, None),
        Row(node(8), 0, None, True, True, None),
    ]
    header, first, second = as_csv(rows).splitlines()
    assert header == ",".join(FIELDS)
    assert first == "7,1,1,device,4,untagged,a/b a/c,64,0,0,0,12,0"
    assert second.endswith(",1")
