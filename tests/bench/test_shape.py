from support.recipes import make_recipe

from kvflow.bench.shape import Shape, reshape
from kvflow.recipe.ranges import Range


def test_reshape_without_changes_leaves_the_recipe_as_it_is(tmp_path):
    loaded = make_recipe(tmp_path, {"a": {}, "b": {"after": "a"}})
    assert reshape(loaded, Shape()) == loaded


def test_reshape_of_lengths_reaches_every_agent_and_the_workload(tmp_path):
    loaded = make_recipe(tmp_path, {"a": {"fixed_tokens": 10}, "b": {"fixed_tokens": 20}})
    changed = reshape(loaded, Shape(fixed=64, dynamic=Range(8, 9), output=3)).recipe
    assert {(a.fixed_tokens, a.output_tokens) for a in changed.agents.values()} == {(64, 3)}
    assert changed.workload.dynamic_tokens == Range(8, 9)


def test_reshape_to_synthetic_prefixes_drops_the_prompt_files(tmp_path):
    changed = reshape(make_recipe(tmp_path, {"a": {}}), Shape(fixed=64))
    assert (changed.recipe.agents["a"].prompt, dict(changed.prompts)) == (None, {})


def test_reshape_keeps_the_share_that_agents_have_in_common(tmp_path):
    shared = {"fixed_tokens": 100, "shared_prefix": {"name": "rules", "tokens": 25}}
    changed = reshape(make_recipe(tmp_path, {"a": shared}), Shape(fixed=1000))
    assert changed.recipe.agents["a"].shared_prefix.tokens == 250


def test_reshape_of_the_output_keeps_prompt_files(tmp_path):
    loaded = make_recipe(tmp_path, {"a": {}})
    changed = reshape(loaded, Shape(output=5))
    assert changed.prompts == loaded.prompts
    assert changed.recipe.agents["a"].prompt == "a.md"
