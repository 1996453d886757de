import pytest
from support.recipes import make_recipe

from kvflow.bench.local import LocalRig
from kvflow.bench.measure import Access
from kvflow.cli.bench_settings import Sizes, settings
from kvflow.recipe.ranges import Range

NOTHING = dict.fromkeys(
    ("fixed", "dynamic", "output", "pool_ratio", "link_ratio", "concurrency", "runs")
)


@pytest.fixture
def loaded(tmp_path):
    agents = {
        name: {"fixed_tokens": 1000, "output_tokens": 10, **after}
        for name, after in (("a", {}), ("b", {"after": "a"}), ("c", {"after": "b"}))
    }
    return make_recipe(tmp_path, agents, workload={"runs": 7, "concurrency": 2})


def made(loaded, *, quick=True, rig=None, **sizes):
    return settings(loaded, Sizes(**{**NOTHING, **sizes}), quick=quick, rig=rig)


def test_settings_without_a_word_are_the_recipe(loaded):
    [setting] = made(loaded)
    assert setting.served == setting.driven == loaded
    assert (setting.name, setting.pool_ratio, setting.link_ratio) == ("flow", None, None)


@pytest.mark.parametrize(("quick", "runs"), [(True, 2), (False, 7)])
def test_settings_have_a_run_for_each_at_once_or_all_of_the_recipe(loaded, quick, runs):
    [setting] = made(loaded, quick=quick)
    assert (setting.runs, setting.concurrency) == (runs, 2)


def test_settings_are_every_combination_each_named_by_what_varies(loaded):
    found = made(loaded, pool_ratio="0.43,0.86", output="16,64", concurrency="3")
    assert [setting.name for setting in found] == [
        "pool 0.43, output 16", "pool 0.43, output 64", "pool 0.86, output 16",
        "pool 0.86, output 64",
    ]  # fmt: skip
    assert {setting.concurrency for setting in found} == {3}
    assert found[1].driven.recipe.agents["a"].output_tokens == 64


def test_settings_of_the_cpu_engine_have_a_pool_and_a_link(loaded):
    [setting] = made(loaded, rig=LocalRig("cpu", "m", Access()))
    assert (setting.pool_ratio, setting.link_ratio) == (0.43, 0.5)


def test_settings_of_few_agents_have_a_pool_that_holds_a_call(loaded):
    [setting] = made(loaded, rig=LocalRig("cpu", "m", Access()), output="900")
    assert 0.6 < setting.pool_ratio < 0.75  # 1932 of 3000 tokens, and a little room


def test_settings_take_lengths(loaded):
    [setting] = made(loaded, fixed=64, dynamic="8..9", runs=5)
    assert setting.driven.recipe.agents["c"].fixed_tokens == 64
    assert setting.driven.recipe.workload.dynamic_tokens == Range(8, 9)
    assert setting.runs == 5
