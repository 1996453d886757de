from itertools import pairwise

import pytest

from kvflow.bench.model import fixed_set
from kvflow.bench.regime import pools
from kvflow.bench.suites import SCALES, SUITES
from kvflow.recipe.check import check
from kvflow.recipe.convert import to_graph
from kvflow.workload import plan_run

SYNTHETIC = [name for name in SUITES if name != "paper-peer"]
every = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)


@every
@pytest.mark.parametrize("name", SUITES)
def test_suite_has_valid_recipes_and_settings_with_names_of_their_own(name, scale):
    suite = SUITES[name](scale)
    assert suite.name == name
    names = [setting.name for setting in suite.settings]
    assert len(set(names)) == len(names) > 1
    for setting in suite.settings:
        for loaded in (setting.served, setting.driven):
            assert check(loaded.recipe) == []
            assert loaded.graph.agents == to_graph(loaded.recipe).agents


@every
@pytest.mark.parametrize("name", SYNTHETIC)
def test_suite_leaves_room_for_every_call(name, scale):
    for setting in SUITES[name](scale).settings:
        fixed = fixed_set(setting.served, "no model needed")
        sizes = pools(setting, fixed)
        assert sizes.pressed / fixed.unique == pytest.approx(setting.pool_ratio, rel=0.01)
        assert sizes.limit > fixed.unique


@every
@pytest.mark.parametrize("name", SUITES)
def test_suite_drives_what_kvflow_is_told_of(name, scale):
    for setting in SUITES[name](scale).settings:
        told, walked = setting.served.recipe, setting.driven.recipe
        assert told.name == walked.name
        assert [(a, s.fixed_tokens) for a, s in told.agents.items()] == [
            (a, s.fixed_tokens) for a, s in walked.agents.items()
        ]


@pytest.mark.parametrize("name", SUITES)
def test_suite_sets_the_link_on_the_cpu_engine_only(name):
    assert all(setting.link_ratio for setting in SUITES[name](SCALES["cpu"]).settings)
    assert not any(setting.link_ratio for setting in SUITES[name](SCALES["full"]).settings)


@pytest.mark.parametrize("name", ["paper-single", "paper-peer", "concurrent"])
def test_suite_of_the_paper_has_the_papers_figures(name):
    papers = [setting.paper for setting in SUITES[name](SCALES["full"]).settings]
    assert any(paper and "lru" in paper.speedups for paper in papers)


def test_paper_single_has_the_lengths_of_the_paper():
    sizes = {
        (
            next(iter(setting.driven.recipe.agents.values())).fixed_tokens,
            setting.driven.recipe.workload.dynamic_tokens.low,
            len(setting.driven.recipe.agents),
        )
        for setting in SUITES["paper-single"](SCALES["full"]).settings
    }
    assert sizes == {
        (4096, 32, 10), (8192, 32, 10), (4096, 256, 10), (8192, 256, 10), (4096, 32, 20),
        (8192, 32, 20),
    }  # fmt: skip


def test_concurrent_runs_as_many_workflows_at_once_as_it_says():
    setting = SUITES["concurrent"](SCALES["cpu"]).settings[0]
    first = [call for call in plan_run(setting.driven, 0, 0) if not call.predecessors]
    assert len(first) == 10
    assert len(plan_run(setting.driven, 0, 0)) == 100


def wrong_share(setting, runs=200):
    """Share of steps of the driven walk that are not those of the sequence."""
    names = list(setting.served.recipe.agents)
    wrong = steps = 0
    for run in range(runs):
        walked = [names.index(call.agent) for call in plan_run(setting.driven, run, 3)]
        assert walked[0] == 0
        assert len(walked) == len(names)
        for here, there in pairwise(walked):
            steps += 1
            wrong += there != (here + 1) % len(names)
    return wrong / steps


def test_wrong_hints_sends_its_share_of_calls_elsewhere():
    settings = SUITES["wrong-hints"](SCALES["cpu"]).settings
    found = [wrong_share(setting) for setting in settings]
    assert found == pytest.approx([0, 0.25, 0.5, 1], abs=0.03)
    assert (found[0], found[-1]) == (0, 1)


def test_mixed_has_the_workflow_alone_and_beside_chats():
    lanes = [setting.plain_lanes for setting in SUITES["mixed"](SCALES["cpu"]).settings]
    assert lanes[0] == 0
    assert lanes[1] > 0
