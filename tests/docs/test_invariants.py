"""The list of invariants is whole: its numbers, its tests, and all that the code cites of it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/invariants.md").read_text(encoding="utf-8")
NUMBERS = [int(number) for number in re.findall(r"^(\d+)\. ", PAGE, re.MULTILINE)]
TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
CITED = re.compile(r"\binvariants?\s+(\d+(?:(?:,|\s+and|\s+to)\s+\d+)*)", re.IGNORECASE)
"""One number, or several: 8 to 10, 12 and 18."""


def cited(text: str) -> set[int]:
    numbers: set[int] = set()
    for listed in CITED.findall(text):
        for first, last in re.findall(r"(\d+)(?:\s+to\s+(\d+))?", listed):
            numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def names_in(path: Path) -> set[str]:
    found = ast.parse(path.read_text(encoding="utf-8")).body
    return {one.name for one in found if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_invariants_are_numbered_from_1_to_40_without_a_gap() -> None:
    assert list(range(1, 41)) == NUMBERS


def test_every_invariant_names_a_test() -> None:
    items = re.split(r"^\d+\. ", PAGE, flags=re.MULTILINE)[1:]
    assert [number for number, item in enumerate(items, 1) if "::test_" not in item] == []
    assert len(TESTS) == PAGE.count("::")


@pytest.mark.parametrize("path", sorted({path for path, _ in TESTS}))
def test_tests_that_are_named_are_there(path: str) -> None:
    assert {name for named, name in TESTS if named == path} <= names_in(ROOT / path)


def test_invariants_that_the_code_cites_are_listed() -> None:
    paths = sorted((ROOT / "kvflow").rglob("*.py"))
    numbers = {path: cited(path.read_text(encoding="utf-8")) for path in paths}
    assert {path: found for path, found in numbers.items() if not found <= {*NUMBERS}} == {}
    assert any(numbers.values())


def test_cited_numbers_are_read_over_the_end_of_a_line() -> None:
    assert cited("Source: invariants 8 to 10, 12\nand 18. And (paper Invariant 31).") == {
        8, 9, 10, 12, 18, 31
    }  # fmt: skip
    assert cited("invariants 7\nto 9 and 36 to 38. A call") == {7, 8, 9, 36, 37, 38}
    assert cited("Invariant: a parent's rank") == set()
