"""docs/recipes.md says what is so."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from kvflow.recipe.draw import draw
from kvflow.recipe.load import catalogue, find, load
from kvflow.runs import Run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "recipe_reference", ROOT / "scripts" / "recipe_reference.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reference_is_up_to_date(script: ModuleType) -> None:
    assert script.page_with(script.reference(), PAGE) == PAGE


def test_reference_script_check_tells_a_page_that_is_not(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "recipes.md"
    page.write_text(f"before\n{script.BEGIN}\nold\n{script.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(script, "PAGE", page)
    assert script.main(["--check"]) == 1
    assert script.main([]) == 0
    assert script.main(["--check"]) == 0
    written = page.read_text(encoding="utf-8")
    assert written.startswith("before\n")
    assert written.endswith("\nafter\n")


def test_pictures_are_those_that_the_command_draws() -> None:
    graph = load(find("peer")).graph
    steps = Run.at(graph, ["planner", "executor", "expresser"], ["reviewer"]).steps()
    assert draw(graph) in PAGE
    assert draw(graph, steps).partition("\n\n")[0] in PAGE


def test_table_of_shipped_recipes_is_complete() -> None:
    section = PAGE.partition("## Shipped recipes")[2].partition("##")[0]
    names = re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE)
    assert sorted(names) == [path.stem for path in catalogue()]


def test_first_example_is_valid(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "report.yaml"
    path.write_text(text, encoding="utf-8")
    (tmp_path / "prompts").mkdir()
    for name in ("researcher", "writer", "reviewer"):
        (tmp_path / "prompts" / f"{name}.md").write_text(f"You are {name}.", encoding="utf-8")
    assert list(load(path).graph.agents) == ["researcher", "writer", "reviewer"]
