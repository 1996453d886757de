"""Committed results can be read by whoever follows the shipped schemas, and name no folder of
the machine that they were made on."""

import re
from pathlib import Path

import pytest

from kvflow.bench.result import RESULT
from kvflow.bench.watched import WatchedRuns

RESULTS = Path(__file__).parents[2] / "docs/results"
FOLDERS = sorted(report.parent for report in RESULTS.glob("*/report.md"))
OWN_FOLDER = re.compile(r"(?<![\w./])/(?:root|home|tmp|work|Users|mnt|var)/")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_committed_result_follows_the_schemas(folder: Path) -> None:
    RESULT.validate_json((folder / "summary.json").read_text())
    runs = WatchedRuns.model_validate_json((folder / "timeline.json").read_text()).runs
    assert runs


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_committed_result_names_no_folder_of_its_machine(folder: Path) -> None:
    told = [path for path in folder.iterdir() if path.suffix != ".svg"]
    assert not [path.name for path in told if OWN_FOLDER.search(path.read_text())]


def test_every_committed_result_is_told_of_in_the_overview() -> None:
    overview = (RESULTS / "README.md").read_text()
    assert not [folder.name for folder in FOLDERS if f"({folder.name}/report.md)" not in overview]
