"""docs/control-plane.md says what is so."""

import re
from pathlib import Path

import pytest
import support.engine  # noqa: F401 - before SGLang
from support.going_round import GoingRound

from kvflow.engine.metrics import Collector
from kvflow.engine.metrics_sample import take
from kvflow.engine.watch import IDLE_TICKS

pytestmark = pytest.mark.engine

PAGE = (Path(__file__).parents[2] / "docs" / "control-plane.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (`kvflow_.*?) \| (.*?) ?\|", re.MULTILINE)


def test_table_of_series_has_each_one_with_its_labels():
    told = {
        series.strip("` "): set(filter(None, labels.split(", ")))
        for names, labels in ROW.findall(PAGE)
        for series in names.split(",")
    }
    assert told == shown()


def shown() -> dict[str, set[str]]:
    """Labels by series, of a server whose every series has a value."""
    made, collector = GoingRound(1, "evict"), Collector()
    made.serve(0)
    made.mini.serve([1, 2, 3], {"kvflow": 7})  # a bad hint
    collector.sample = take(made.mini)
    found = {}
    for family in collector.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = {label for sample in family.samples for label in sample.labels}
    return found


def test_end_of_watching_is_told_as_it_is():
    assert f"stops by itself {IDLE_TICKS} seconds after" in " ".join(PAGE.split())
