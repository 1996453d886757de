"""docs/top.md says what is so."""

import re
from pathlib import Path

from kvflow.frames import State, Why
from kvflow.tui import stat
from kvflow.tui.filter import parse
from kvflow.tui.rows import Column

TEXT = (Path(__file__).parents[2] / "docs" / "top.md").read_text(encoding="utf-8")
NODES = TEXT.partition("## Which nodes")[2].partition("\n## ")[0]


def test_words_of_the_filter_table_are_understood() -> None:
    cells = [row.split(" | ")[0] for row in NODES.splitlines() if row.startswith("| `")]
    words = [word.replace("\\|", "|") for cell in cells for word in re.findall(r"`(.+?)`", cell)]
    assert len(words) >= 10
    assert all(parse(word).tests for word in words)


def test_values_of_the_filter_are_all_told() -> None:
    told = set(re.findall(r"`([a-z]+)`", NODES))
    assert {*State, *Why, *Column} <= told


def test_filters_of_the_examples_are_understood() -> None:
    filters = re.findall(r"--filter '(.+?)'", TEXT)
    assert filters
    assert all(parse(text).tests for text in filters)


def test_titles_of_the_ticks_are_those_that_are_printed() -> None:
    for line in stat.titles():
        assert "".join(piece.text for piece in line).rstrip() in TEXT
