"""Recipes for tests, written and read as a user's are."""

from pathlib import Path

import yaml

from kvflow.recipe.load import Loaded, load


def write_recipe(folder: Path, agents: dict[str, dict[str, object]], **rest: object) -> Path:
    """Write a recipe; an agent without a prompt or fixed_tokens gets a prompt of its own."""
    described = {}
    for name, spec in agents.items():
        described[name] = dict(spec)
        if "fixed_tokens" not in spec:
            (folder / f"{name}.md").write_text(f"You are {name}.", encoding="utf-8")
            described[name]["prompt"] = f"{name}.md"
    recipe = {"kvflow": 1, "name": "flow", "agents": described, **rest}
    path = folder / "flow.yaml"
    path.write_text(yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")
    return path


def make_recipe(folder: Path, agents: dict[str, dict[str, object]], **rest: object) -> Loaded:
    """Write a recipe and load it."""
    return load(write_recipe(folder, agents, **rest))
