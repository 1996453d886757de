import json

import jsonschema
import pytest
from support.bench import (
    FIXED,
    DrawnRig,
    DrawnStage,
    Silent,
    make_answer,
    make_outcome,
    make_setting,
    make_trial,
)

from kvflow.bench import document, session
from kvflow.bench.result import (
    RESULT,
    Document,
    SpeedupFigure,
    SuiteDocument,
    json_schema,
    settings_of,
)
from kvflow.bench.session import Measured
from kvflow.bench.setting import PaperFigure, Suite
from kvflow.errors import KvflowError

SECONDS = {"lru": 2.0, "hicache": 1.0, "full": 0.5}


def benched(outcome):
    session.run(outcome, DrawnRig(DrawnStage(SECONDS, noise=0.02)), Silent())
    return document.result(outcome, {"cores": 2}, "kvflow bench flow", None)


@pytest.fixture
def result(tmp_path):
    return benched(make_outcome(make_setting(tmp_path), "lru,hicache,full"))


@pytest.fixture
def suite(tmp_path):
    settings = [make_setting(tmp_path, name) for name in ("one", "two")]
    outcome = make_outcome(settings[0], "hicache,full")
    outcome.suite = Suite("both", "Two flows.", settings)
    return benched(outcome)


def test_result_of_a_recipe_has_the_top_level_that_others_rely_on(result):
    body = json.loads(result.model_dump_json())
    assert list(body) == [
        "schema_version", "recipe", "setup", "environment", "arms", "speedups", "verdict"
    ]  # fmt: skip
    assert body["schema_version"] == 1
    assert set(body["speedups"]["full/hicache"]) == {"mean", "low", "high", "claim"}
    assert set(body["speedups"]["ttft"]["full/hicache"]) == {"mean", "low", "high", "claim"}


def test_result_says_what_was_set_up(result):
    setup = result.setup
    assert setup["command"] == "kvflow bench flow"
    assert (setup["pool_ratio"], setup["link_ratio"], setup["recompute_ms"]) == (0.6, 0.5, 80.0)
    assert (setup["dynamic_tokens"], setup["output_tokens"], setup["agents"]) == ("10", [5], 2)
    assert result.environment == {"cores": 2}


OWN = {"pool_tokens": None}
CPU = {"pool_tokens": 60, "label": "CPU engine, emulated link"}


@pytest.mark.parametrize(
    ("facts", "suite", "advised"),
    [
        ({"server": "http://host"}, "flow", set()),
        (OWN, "flow", {"--pool-ratio"}),
        (CPU, "flow", {"--pool-ratio"}),
        (CPU, "paper-single", set()),
    ],
)
def test_result_advises_another_pool_only_where_the_bench_can_set_one(
    tmp_path, facts, suite, advised
):
    assert advised_in(tmp_path, make_answer(), facts, suite) == advised


@pytest.mark.parametrize(("facts", "advised"), [(OWN, set()), (CPU, {"--link-ratio"})])
def test_result_advises_another_link_only_on_the_cpu_engine(tmp_path, facts, advised):
    assert advised_in(tmp_path, make_answer(device=0, host=FIXED), facts, "flow") == advised


def advised_in(tmp_path, stocks, facts, suite) -> set[str]:
    """The flags that are advised where kvflow is as fast as stock, which answers like this."""
    setting = make_setting(tmp_path)
    outcome = make_outcome(setting, "hicache,prefetch")
    outcome.suite = Suite(suite, "", [setting])
    answers = {"hicache": stocks, "prefetch": make_answer()}
    trials = [
        make_trial(setting, arm, repeat, answers[arm]) for arm in answers for repeat in range(3)
    ]
    measured = Measured(setting, facts={**facts, "recompute_ms": 300.0}, trials=trials)
    advice = document.document(measured, outcome, {}, "", None).verdict.advice
    return {word for word in " ".join(advice).split() if word.startswith("--")}


def test_result_of_a_suite_has_a_document_for_each_setting(suite):
    assert isinstance(suite, SuiteDocument)
    assert [one.setup["setting"] for one in settings_of(suite)] == ["one", "two"]


@pytest.mark.parametrize("kind", ["result", "suite"])
def test_result_obeys_the_schema_and_comes_back_from_json_as_it_was(kind, request):
    found = request.getfixturevalue(kind)
    body = json.loads(found.model_dump_json())
    jsonschema.validate(body, json_schema(), cls=jsonschema.Draft202012Validator)
    assert RESULT.validate_python(body) == found


def test_schema_refuses_what_is_not_a_result(result):
    body = json.loads(result.model_dump_json())
    body["speedups"]["full/hicache"]["claim"] = "amazing"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, json_schema(), cls=jsonschema.Draft202012Validator)


def test_speedup_inverted_has_interval_and_claim_turned_round():
    faster = SpeedupFigure(mean=2.0, low=1.6, high=2.5, claim="faster")
    assert faster.inverted() == SpeedupFigure(mean=0.5, low=0.4, high=0.625, claim="slower")
    single = SpeedupFigure(mean=0.5, low=None, high=None, claim="unknown")
    assert single.inverted() == SpeedupFigure(mean=2.0, low=None, high=None, claim="unknown")


@pytest.mark.parametrize("metric", ["run", "ttft"])
def test_result_compares_any_arm_with_any_other(result, metric):
    assert result.over("full", "lru", metric) == result.speedup("full/lru", metric)
    assert result.over("lru", "full", metric) == result.speedup("full/lru", metric).inverted()
    assert result.over("lru", "evict", metric) is None


def test_result_of_nothing_is_none(tmp_path):
    outcome = make_outcome(make_setting(tmp_path), "full")
    error = KvflowError("no server")
    session.run(outcome, DrawnRig(DrawnStage(SECONDS), fault=error), Silent())
    assert document.result(outcome, {}, "", None) is None


def test_result_keeps_what_was_measured_before_an_arm_failed(tmp_path):
    outcome = make_outcome(make_setting(tmp_path), "hicache,full")
    stage = DrawnStage(SECONDS, noise=0.02, faults={("hicache", 2): "gone"})
    session.run(outcome, DrawnRig(stage), Silent())
    found = document.result(outcome, {}, "", None)
    assert isinstance(found, Document)
    assert found.arms["hicache"].failure == "repeat 3: gone"
    assert found.speedup("full/hicache").mean == pytest.approx(2.0, rel=0.1)


def test_result_has_the_papers_figure_beside_it(tmp_path):
    setting = make_setting(tmp_path, paper=PaperFigure({"hicache": 1.24}, "on an H100"))
    found = benched(make_outcome(setting, "hicache,full"))
    assert found.setup["paper"] == {"speedups": {"hicache": 1.24}, "source": "on an H100"}
