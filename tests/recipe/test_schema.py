import json
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from support.calm import calm
from support.recipe_texts import recipes

from kvflow.recipe.load import catalogue
from kvflow.recipe.model import Recipe
from kvflow.recipe.schema import json_schema


@pytest.fixture(scope="module")
def validator() -> Any:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    return jsonschema.Draft202012Validator(json_schema())


@calm
@given(recipe=recipes())
def test_json_schema_accepts_every_recipe(validator: Any, recipe: Recipe) -> None:
    validator.validate(recipe.model_dump(mode="json", exclude_defaults=True))


@pytest.mark.parametrize("path", catalogue(), ids=lambda path: path.stem)
def test_json_schema_accepts_shipped_recipes_as_written(validator: Any, path: Any) -> None:
    validator.validate(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "agent",
    [
        {"fixed_tokens": 0},
        {"fixed_tokens": 8, "aftr": "b"},
        {"fixed_tokens": 8, "after": {"any": []}},
        {"fixed_tokens": 8, "after": {"agent": "b", "p": 2}},
        {"fixed_tokens": 8, "fan_out": "one"},
        {"fixed_tokens": 8, "memory": "some"},
    ],
)
def test_json_schema_refuses_what_the_model_refuses(validator: Any, agent: Any) -> None:
    assert not validator.is_valid({"kvflow": 1, "name": "flow", "agents": {"a": agent}})


def test_json_schema_is_plain_json_with_defaults_as_recipes_write_them() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert schema["$defs"]["AgentSpec"]["properties"]["fan_out"]["default"] == 1
    assert schema["properties"]["workload"]["default"]["dynamic_tokens"] == 32
