import contextlib
import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.engine.settings import DEFAULT_MODE, VARIABLE, Settings, from_environment, to_mode
from kvflow.errors import UsageError
from kvflow.recipe.model import Mode, PolicySpec

RECIPE = {
    "kvflow": 1,
    "name": "pair",
    "agents": {"a": {"prompt": "You are a."}, "b": {"prompt": "You are b.", "after": "a"}},
}


def read(text: str) -> Settings:
    return from_environment({VARIABLE: text})


@pytest.mark.parametrize("environ", [{}, {VARIABLE: ""}, {VARIABLE: " \n"}, {VARIABLE: "{}"}])
def test_nothing_said_gives_the_defaults(environ):
    assert from_environment(environ) == Settings(DEFAULT_MODE, PolicySpec(), None)


@pytest.mark.parametrize("mode", get_args(Mode))
def test_mode_is_taken(mode):
    assert read(json.dumps({"mode": mode})).mode == mode
    assert to_mode(mode) == mode


def test_policy_is_taken_and_the_rest_of_it_stays_default():
    assert read('{"policy": {"untagged_steps": 9}}').policy == PolicySpec(untagged_steps=9)


def test_recipe_is_taken_with_its_prompts_inline():
    recipe = read(json.dumps({"recipe": RECIPE})).recipe
    assert recipe is not None
    assert recipe.agents["b"].prompt == "You are b."


def test_at_sign_names_a_file(tmp_path: Path):
    path = tmp_path / "config.json"
    path.write_text('{"mode": "off"}')
    assert read(f"@{path}").mode == "off"


def test_file_that_is_missing_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match=VARIABLE) as caught:
        read(f"@{tmp_path}/missing.json")
    assert "missing.json" in caught.value.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{mode: off}", "property name"),
        ("[1]", "expected a map"),
        ("3", "expected a map"),
        ('{"mod": "off"}', "expected a map of mode, policy and recipe"),
        ('{"mode": "fast"}', "no mode 'fast'"),
        ('{"mode": ["off"]}', "no mode"),
        ('{"mode": null}', "no mode None"),
        ('{"policy": {"untagged_steps": -1}}', "untagged_steps"),
        ('{"policy": {"colour": 1}}', "colour"),
        ('{"policy": 3}', "policy"),
        ('{"policy": null}', "policy"),
        ('{"policy": [["untagged_steps", 1]]}', "policy"),
        ('{"recipe": {"kvflow": 1}}', "name"),
        ('{"recipe": []}', "recipe"),
    ],
)
def test_bad_settings_are_refused_with_their_reason(text, why):
    with pytest.raises(UsageError, match=f"{VARIABLE} cannot be used") as caught:
        read(text)
    assert why.lower() in caught.value.why.lower()
    assert caught.value.hint


def test_file_that_is_not_text_is_refused(tmp_path: Path):
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=f"{VARIABLE} cannot be used"):
        read(f"@{path}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
)
KEYS = st.sampled_from(["mode", "policy", "recipe"])
ANY_TEXT = st.text() | st.builds(json.dumps, JSON | st.dictionaries(KEYS, JSON))


@calm
@given(text=ANY_TEXT)
def test_text_of_any_kind_gives_settings_or_a_usage_error(text):
    with contextlib.suppress(UsageError):
        assert isinstance(read(text), Settings)
