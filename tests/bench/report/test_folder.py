import builtins
import json
import re

import pytest
from support.bench import (
    SECONDS,
    DrawnRig,
    DrawnStage,
    Silent,
    make_outcome,
    make_result,
    make_setting,
)

from kvflow.bench import document, session
from kvflow.bench.report import folder, plots
from kvflow.bench.result import RESULT
from kvflow.bench.session import Measured
from kvflow.errors import KvflowError, UsageError


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
    pictures = folder.fill(out, result, measured).names
    assert sorted(path.name for path in out.iterdir()) == sorted([
        "config.json", "environment.json", "report.md", "requests.jsonl", "summary.json",
        "timeline.json", *pictures
    ])  # fmt: skip
    assert RESULT.validate_json((out / "summary.json").read_bytes()) == result
    assert json.loads((out / "environment.json").read_text()) == {"cores": 2, "gpus": None}


def test_fill_whose_pictures_fail_leaves_the_rest_and_says_why(tmp_path, monkeypatch):
    def fail(*_):
        raise ValueError("no such font")

    monkeypatch.setattr(plots, "write", fail)
    result, measured = make_result(tmp_path)
    pictures = folder.fill(tmp_path, result, measured)
    assert pictures == ([], "ValueError: no such font")
    assert "## flow" in (tmp_path / "report.md").read_text()


def test_fill_has_a_report_without_pictures_while_they_are_drawn(tmp_path, monkeypatch):
    reports = []

    def interrupted(out, *_):
        reports.append((out / "report.md").read_text())
        raise KeyboardInterrupt

    monkeypatch.setattr(plots, "write", interrupted)
    result, measured = make_result(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        folder.fill(tmp_path, result, measured)
    assert "## flow" in reports[0]
    assert "![" not in reports[0]


def test_fill_of_a_folder_that_cannot_be_written_says_where_and_why(tmp_path):
    result, measured = make_result(tmp_path)
    with pytest.raises(KvflowError, match=r"gone cannot be written") as error:
        folder.fill(tmp_path / "gone", result, measured)
    assert error.value.why == "No such file or directory"


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
    pictures = folder.fill(tmp_path, result, measured).names
    text = (tmp_path / "report.md").read_text()
    assert re.findall(r"!\[.*?\]\((.*?)\)", text) == pictures
    assert set(pictures) == {"speedup.svg", "hits.svg", "timeline-1.svg", "timeline-2.svg"}
    assert all((tmp_path / name).is_file() for name in pictures)
    assert "$ kvflow bench flow" in text
    assert "gpus" not in text  # unknown


@pytest.mark.parametrize(
    ("facts", "who"), [({}, "Ran on cores 2."), ({"environment_of": "client"}, "The client ran on")]
)
def test_report_says_whose_machine_it_tells_of(tmp_path, facts, who):
    result, _ = make_result(tmp_path)
    result.setup.update(facts)
    assert f"\n{who}" in folder.report(result, [result], [])


def test_fill_shows_overview_and_speedups_first_and_timelines_in_their_settings(tmp_path):
    result, measured = make_result(tmp_path, "one", "two")
    folder.fill(tmp_path, result, measured)
    text = (tmp_path / "report.md").read_text()
    inorder = ["## Overview", "(speedup.svg)", "(hits.svg)", "## flow, one", "(timeline-1.svg)",
               "## flow, two", "(timeline-2.svg)"]  # fmt: skip
    places = [text.index(part) for part in inorder]
    assert places == sorted(places)


def test_fill_gives_a_setting_its_own_timeline_where_another_was_never_begun(tmp_path):
    result, measured = make_result(tmp_path, "one", "two")
    filled = folder.fill(tmp_path, result, [Measured(measured[0].setting), *measured])
    names = filled.names
    assert [name for name in names if "timeline" in name] == ["timeline-1.svg", "timeline-2.svg"]


def test_fill_of_a_bench_whose_arms_all_failed_tells_why_without_pictures(tmp_path):
    outcome = make_outcome(make_setting(tmp_path), "hicache,full")
    faults = {(arm, 0): f"no room for {arm}" for arm in ("hicache", "full")}
    session.run(outcome, DrawnRig(DrawnStage(SECONDS, faults=faults)), Silent())
    result = document.result(outcome, {}, "kvflow bench flow", None)
    assert folder.fill(tmp_path, result, outcome.measured) == ([], "")
    text = (tmp_path / "report.md").read_text()
    assert "- hicache: repeat 1: no room for hicache" in text
    assert "- full: repeat 1: no room for full" in text


def test_fill_without_matplotlib_goes_without_pictures(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    result, measured = make_result(tmp_path)
    monkeypatch.setattr(builtins, "__import__", without)
    assert folder.fill(tmp_path, result, measured) == ([], "")
    assert "![" not in (tmp_path / "report.md").read_text()
