"""The shipped recipes: what they must be, besides valid."""

from pathlib import Path

import pytest

from kvflow.recipe.draw import draw
from kvflow.recipe.load import Loaded, catalogue, load

SHIPPED = {path.stem: load(path) for path in catalogue()}
every_recipe = pytest.mark.parametrize("loaded", SHIPPED.values(), ids=SHIPPED)


def test_catalogue_has_the_six() -> None:
    assert set(SHIPPED) == {
        "branching-10",
        "peer",
        "plan-execute",
        "sequential-10",
        "software-company",
        "supervisor",
    }


@every_recipe
def test_recipe_has_the_name_of_its_file_and_a_description(loaded: Loaded) -> None:
    assert loaded.recipe.name == loaded.path.stem
    assert loaded.recipe.description


@every_recipe
def test_recipe_explains_itself_first(loaded: Loaded) -> None:
    comment = loaded.path.read_text(encoding="utf-8").split("kvflow: 1")[0]
    assert all(line.startswith("#") for line in comment.splitlines())
    assert "Look at:" in comment
    assert "Prompt size:" in comment


@every_recipe
def test_recipe_is_drawn_as_a_picture_within_80_columns(loaded: Loaded) -> None:
    rows = draw(loaded.graph, dict.fromkeys(loaded.graph.agents, 10)).splitlines()
    assert "(start)" in rows[0]
    assert max(map(len, rows)) <= 80


@every_recipe
def test_recipe_names_no_model_so_that_it_runs_anywhere(loaded: Loaded) -> None:
    assert loaded.recipe.engine.model is None


def test_prompts_are_as_long_as_real_ones() -> None:
    words = {
        (recipe, agent): len(text.split())
        for recipe, loaded in SHIPPED.items()
        for agent, text in loaded.prompts.items()
    }
    company = {key: count for key, count in words.items() if key[0] == "software-company"}
    others = {key: count for key, count in words.items() if key not in company}
    # A token is about three quarters of a word.
    assert all(600 <= count / 0.75 <= 1500 for count in company.values())
    assert all(250 <= count / 0.75 <= 450 for count in others.values())


def test_every_prompt_file_belongs_to_a_recipe() -> None:
    folder = next(iter(SHIPPED.values())).path.parent
    used = {
        (folder / spec.prompt).resolve()
        for loaded in SHIPPED.values()
        for spec in loaded.recipe.agents.values()
        if spec.prompt
    }
    assert used == {path.resolve() for path in Path(folder, "prompts").rglob("*.md")}
