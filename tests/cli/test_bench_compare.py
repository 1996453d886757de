import json
from pathlib import Path

import pytest
from support.bench import make_result

from kvflow.bench.result import Document, settings_of
from kvflow.cli import bench_compare


@pytest.fixture
def found(tmp_path: Path) -> Document:
    return settings_of(make_result(tmp_path)[0])[0]


def kept(document: Document, folder: Path, name: str) -> Path:
    file = folder / name
    file.write_text(document.model_dump_json())
    return file


def compared(before: Document, after: Document, folder: Path, *, as_json: bool = False) -> None:
    first, second = kept(before, folder, "before.json"), kept(after, folder, "after.json")
    bench_compare.show(first, second, as_json=as_json)


def test_compare_shows_times_of_every_arm_and_changes_of_the_others_over_the_baseline(
    found: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compared(found, found, tmp_path)
    times, ratios = capsys.readouterr().out.split("nothing is claimed of them")
    assert [line.split()[1] for line in times.splitlines()[1:4]] == ["lru", "hicache", "full"]
    assert [line.split()[-1] for line in times.splitlines()[1:4]] == ["1.00"] * 3
    rows = [line.split() for line in ratios.splitlines() if "/hicache" in line]
    assert [row[1] for row in rows] == ["lru/hicache", "full/hicache"]
    assert all("no difference" in " ".join(row) for row in rows)


def test_compare_of_results_with_one_arm_in_common_says_why_nothing_is_compared(
    found: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = found.model_copy(update={"arms": {"full": found.arms["full"]}})
    compared(found, alone, tmp_path)
    assert "No two arms were measured in both" in capsys.readouterr().out


def test_compare_as_json_has_null_for_what_cannot_be_compared(
    found: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compared(found, found, tmp_path, as_json=True)
    changes = {one["arm"]: one for one in json.loads(capsys.readouterr().out)["changes"]}
    assert (changes["hicache"]["run"], changes["hicache"]["base"]) == (None, "hicache")
    assert changes["full"]["run"]["claim"] == "no difference"
