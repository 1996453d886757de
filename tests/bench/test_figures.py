from dataclasses import replace

import pytest
from support.bench import FIXED, OUTPUT, make_answer, make_setting, make_trial

from kvflow.bench import figures
from kvflow.bench.goodput import parse
from kvflow.bench.session import Measured
from kvflow.bench.stats import Claim
from kvflow.bench.usage import GpuUse
from kvflow.client.records import CallState


@pytest.fixture
def setting(tmp_path):
    return make_setting(tmp_path, runs=2)


def measured(setting, *trials, **more) -> Measured:
    return Measured(setting, trials=list(trials), **more)


def test_arms_have_times_of_runs_and_of_each_repeat(setting):
    slow, fast = make_answer(0.3, 0.7), make_answer(0.1, 0.4)
    found = figures.arms(
        measured(
            setting,
            make_trial(setting, "hicache", 0, slow),
            make_trial(setting, "hicache", 1, fast),
        ),
        None,
    )["hicache"]
    assert found.run_s.mean == pytest.approx(1.5)  # two calls a run
    assert found.run_s_by_repeat == pytest.approx({0: 2.0, 1: 1.0})
    assert found.ttft_s_by_repeat == pytest.approx({0: 0.3, 1: 0.1})
    assert found.repeats == 2


def test_arms_have_metrics_under_the_key_names_of_vllm_bench(setting):
    found = figures.arms(measured(setting, make_trial(setting, "hicache", 0)), None)["hicache"]
    metrics = found.metrics
    assert metrics["completed"] == 4
    assert metrics["total_output_tokens"] == 4 * OUTPUT
    assert metrics["request_throughput"] == pytest.approx(4 / metrics["duration"])
    assert metrics["p99_itl_ms"] == pytest.approx(200 / (OUTPUT - 1))
    assert metrics["mean_tpot_ms"] == pytest.approx(200 / (OUTPUT - 1))
    assert metrics["p99_e2el_ms"] == pytest.approx(300)
    assert "request_goodput" not in metrics


def test_arms_count_calls_within_the_limits_as_goodput(setting):
    trial = make_trial(setting, "hicache", 0)
    trial.calls[0].answer = make_answer(ttft_s=0.9)
    found = figures.arms(measured(setting, trial), parse("ttft:200"))["hicache"].metrics
    assert found["request_goodput"] == pytest.approx(3 / trial.seconds)


def test_arms_say_where_reusable_tokens_were_found(setting):
    trial = make_trial(setting, "hicache", 0, make_answer(device=0, host=60))
    found = figures.arms(measured(setting, trial), None)["hicache"]
    assert (found.reusable_tokens, found.device_tokens, found.host_tokens) == (4 * FIXED, 0, 240)
    assert (found.device_share, found.host_share) == (0, pytest.approx(0.6))
    assert found.computed_tokens == 4 * (FIXED + 10 - 60)
    assert {agent: figures.calls for agent, figures in found.agents.items()} == {"a": 2, "b": 2}


def test_arms_sum_what_the_engine_counted(setting):
    trials = [
        make_trial(setting, "full", n, counts={"prefetches": 3.0, "h2d_bytes": 5e8}) for n in (0, 1)
    ]
    seconds = sum(trial.seconds for trial in trials)
    found = figures.arms(measured(setting, *trials, facts={"link_gbps": 2.0}), None)["full"]
    assert found.engine["prefetches"] == 6
    assert found.link_share == pytest.approx(1e9 / (2e9 * seconds))
    assert found.h2d_gbps == pytest.approx(1 / seconds)


def test_arms_say_how_many_cores_the_server_kept_busy(setting):
    trial = make_trial(setting, "full", 0, cpu_s=3.0)
    found = figures.arms(measured(setting, trial), None)["full"]
    assert found.cpu_cores == pytest.approx(3.0 / trial.seconds)


def test_arms_say_how_busy_the_gpus_and_their_link_were(setting):
    trial = make_trial(setting, "full", 0, gpus=GpuUse(busy=[0.5, 1.0], h2d_gbps=[10.0, 30.0]))
    found = figures.arms(measured(setting, trial), None)["full"]
    assert (found.gpu_busy, found.h2d_gbps) == (0.75, 20)


def test_arm_that_failed_at_once_has_its_reason_and_no_times(setting):
    found = figures.arms(measured(setting, broken={"full": "repeat 1: gone"}), None)["full"]
    assert (found.failure, found.run_s, found.metrics) == ("repeat 1: gone", None, {})


def test_turn_that_failed_counts_for_nothing(setting):
    good = make_trial(setting, "full", 0)
    bad = make_trial(setting, "full", 1, make_answer(9, 9), whole=False, failure="gone")
    found = figures.arms(measured(setting, good, bad), None)["full"]
    assert (found.repeats, found.run_s.mean) == (1, pytest.approx(0.6))


def test_turn_that_failed_after_its_runs_were_measured_counts(setting):
    trials = [make_trial(setting, "full", 0), make_trial(setting, "full", 1, failure="replay")]
    found = measured(setting, *trials)
    found.broken["full"] = "repeat 2: replay"
    figure = figures.arms(found, None)["full"]
    assert (figure.repeats, figure.failure) == (2, "repeat 2: replay")


def test_run_that_did_not_go_through_counts_for_nothing(setting):
    trial = make_trial(setting, "full", 0)
    trial.runs = [trial.runs[0], replace(trial.runs[1], ok=False, seconds=99)]
    trial.calls[-1].state, trial.calls[-1].answer = CallState.FAILED, None
    found = figures.arms(measured(setting, trial), None)["full"]
    assert found.run_s.p99 == pytest.approx(0.6)
    assert found.metrics["failed"] == 1


def test_speedups_compare_only_repeats_that_both_arms_finished(setting):
    trials = [make_trial(setting, "hicache", n, make_answer(1.0, 1.0)) for n in (0, 1, 2)]
    trials += [make_trial(setting, "full", n, make_answer(0.25, 0.75)) for n in (0, 2)]
    found = figures.speedups(measured(setting, *trials))
    assert found["full/hicache"].mean == pytest.approx(2.0)
    assert found["ttft"]["full/hicache"].mean == pytest.approx(4.0)
    assert found["full/hicache"].claim is Claim.FASTER


def test_speedups_without_a_common_repeat_are_left_out(setting):
    trials = [make_trial(setting, "hicache", 0), make_trial(setting, "full", 1)]
    assert figures.speedups(measured(setting, *trials)) == {"ttft": {}}


def test_mismatches_compare_warm_answers_with_the_baselines_cold_ones(setting):
    cold = {(0, 0): (1, 2), (0, 1): (3, 4)}
    trials = {
        "hicache": [
            make_trial(setting, "hicache", 0, cold=cold),
            make_trial(setting, "hicache", 1, again=cold),
        ],
        "full": [make_trial(setting, "full", 0, again={(0, 0): (1, 2), (0, 1): (3, 9)})],
        "evict": [make_trial(setting, "evict", 0)],  # cut short: nothing to compare
    }
    assert figures.mismatches(trials) == {"hicache": (0.0, 2), "full": (0.5, 2)}


def test_mismatches_without_cold_answers_of_the_baseline_are_unknown(setting):
    trials = {"full": [make_trial(setting, "full", 0, again={(0, 0): (1,)})]}
    assert figures.mismatches(trials) == {}
