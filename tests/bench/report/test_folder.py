import builtins
import json
import re

import pytest
from support.bench import make_result

from kvflow.bench.report import folder
from kvflow.bench.result import RESULT
from kvflow.errors import UsageError


def test_make_refuses_a_folder_with_something_in_it(tmp_path):
    (tmp_path / "here").write_text("")
    with pytest.raises(UsageError, match="not empty"):
        folder.make(tmp_path)


def test_make_refuses_what_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be used"):
        folder.make(tmp_path / "file")


def test_fill_leaves_everything_to_judge_the_bench_by(tmp_path):
    result, measured = make_result(tmp_path)
    out = folder.make(tmp_path / "out")
    pictures = folder.fill(out, result, measured)
    assert sorted(path.name for path in out.iterdir()) == sorted([
        "config.json", "environment.json", "report.md", "requests.jsonl", "summary.json",
        "timeline.json", *pictures
    ])  # fmt: skip
    assert RESULT.validate_json((out / "summary.json").read_bytes()) == result
    assert json.loads((out / "environment.json").read_text()) == {"cores": 2, "gpus": None}


def test_fill_writes_every_call_without_its_text(tmp_path):
    result, measured = make_result(tmp_path)
    folder.fill(tmp_path, result, measured)
    calls = [json.loads(line) for line in (tmp_path / "requests.jsonl").read_text().splitlines()]
    assert len(calls) == 3 * 3 * 2  # arms, repeats, calls
    assert {call["arm"] for call in calls} == {"lru", "hicache", "full"}
    assert calls[0]["cached_device"] == 100
    assert "noise" not in (tmp_path / "requests.jsonl").read_text()


def test_fill_shows_in_the_report_only_pictures_that_are_there(tmp_path):
    result, measured = make_result(tmp_path, "one", "two")
    pictures = folder.fill(tmp_path, result, measured)
    text = (tmp_path / "report.md").read_text()
    assert re.findall(r"!\[.*?\]\((.*?)\)", text) == pictures
    assert set(pictures) == {"speedup.svg", "hits.svg", "timeline-1.svg", "timeline-2.svg"}
    assert all((tmp_path / name).is_file() for name in pictures)
    assert "$ kvflow bench flow" in text
    assert "gpus" not in text  # unknown


def test_fill_without_matplotlib_goes_without_pictures(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    result, measured = make_result(tmp_path)
    monkeypatch.setattr(builtins, "__import__", without)
    assert folder.fill(tmp_path, result, measured) == []
    assert "![" not in (tmp_path / "report.md").read_text()
