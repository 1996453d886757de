import errno

import pytest
from support.bench import DrawnRig, DrawnStage, Silent, make_outcome, make_setting

from kvflow.bench import figures, session
from kvflow.bench.session import Outcome
from kvflow.bench.setting import Suite
from kvflow.bench.stats import Claim
from kvflow.errors import KvflowError

TIMES = {"hicache": 1.0, "evict": 0.8, "prefetch": 0.5, "full": 0.5}


def benched(outcome: Outcome, **stage) -> tuple[Outcome, DrawnStage]:
    rig = DrawnRig(DrawnStage(**{"seconds": TIMES, **stage}))
    session.run(outcome, rig, Silent())
    return outcome, rig.stage


def test_run_takes_every_turn_and_who_begins_changes(tmp_path):
    _, stage = benched(make_outcome(make_setting(tmp_path), "hicache,evict,full"))
    assert [arm for _, arm, _ in stage.turns] == [
        "hicache", "evict", "full", "evict", "full", "hicache", "full", "hicache", "evict"
    ]  # fmt: skip


def test_run_finds_the_ratio_through_what_slows_whole_repeats(tmp_path):
    outcome, _ = benched(make_outcome(make_setting(tmp_path), "hicache,prefetch", 5), noise=0.05)
    ratio = figures.speedups(outcome.measured[0])["prefetch/hicache"]
    assert ratio.claim is Claim.FASTER
    assert ratio.low < 2.0 < ratio.high


def test_run_of_a_mode_against_its_like_claims_no_difference_in_17_of_20_benches(tmp_path):
    setting, claims = make_setting(tmp_path), []
    for seed in range(20):
        outcome, _ = benched(make_outcome(setting, "prefetch,full", 5), noise=0.1, seed=seed)
        speedups = figures.speedups(outcome.measured[0])
        claims.append((speedups["full/prefetch"].claim, speedups["ttft"]["full/prefetch"].claim))
    for of_metric in zip(*claims, strict=True):
        assert of_metric.count(Claim.NO_DIFFERENCE) >= 17


def test_run_drops_an_arm_that_failed_and_goes_on_with_the_others(tmp_path):
    outcome, stage = benched(
        make_outcome(make_setting(tmp_path), "hicache,full"),
        faults={("full", 1): "call 0.1 (b): HTTP 500"},
    )
    assert [turn[1:] for turn in stage.turns] == [
        ("hicache", 0), ("full", 0), ("full", 1), ("hicache", 1), ("hicache", 2)
    ]  # fmt: skip
    assert outcome.broken == [("flow", "full", "repeat 2: call 0.1 (b): HTTP 500")]
    assert "full/hicache" in figures.speedups(outcome.measured[0])


def test_run_interrupted_keeps_the_turns_before_and_leaves_the_stage(tmp_path):
    outcome, stage = benched(
        make_outcome(make_setting(tmp_path), "hicache,full"),
        faults={("hicache", 1): KeyboardInterrupt()},
    )
    assert outcome.interrupted
    assert [(trial.arm, trial.repeat) for trial in outcome.measured[0].trials] == [
        ("hicache", 0), ("full", 0), ("full", 1)
    ]  # fmt: skip
    assert stage.left == 1


def test_run_that_cannot_go_on_keeps_the_settings_before(tmp_path):
    one, two = (make_setting(tmp_path, name) for name in ("one", "two"))
    outcome = make_outcome(one, "hicache,full")
    outcome.suite = Suite("two settings", "", [one, two])
    error = KvflowError("the second one breaks")

    class Breaks(DrawnStage):
        async def prepare(self, setting):
            if setting is two:
                raise error
            return await super().prepare(setting)

    session.run(outcome, DrawnRig(Breaks(TIMES), key=lambda setting: 0), Silent())
    assert outcome.error is error
    assert [len(measured.trials) for measured in outcome.measured] == [6, 0]


def test_run_whose_next_stage_finds_the_disk_full_keeps_the_settings_before(tmp_path):
    settings = [make_setting(tmp_path, name) for name in ("one", "two")]
    outcome = make_outcome(settings[0], "hicache,full")
    outcome.suite = Suite("two settings", "", settings)

    class NoRoom(DrawnRig):
        def opened(self, settings, arms, narrate):
            if self.opened_for:
                raise OSError(errno.ENOSPC, "No space left on device", "/tmp/x")
            return super().opened(settings, arms, narrate)

    session.run(outcome, NoRoom(DrawnStage(TIMES)), Silent())
    assert outcome.error is not None
    assert "No space left on device" in outcome.error.why
    assert [len(measured.trials) for measured in outcome.measured] == [6]


def test_run_that_cannot_put_back_what_it_found_keeps_everything_and_says_so(tmp_path):
    error = KvflowError("the mode stays")
    outcome, _ = benched(
        make_outcome(make_setting(tmp_path), "hicache,full"),
        faults={("hicache", 1): KeyboardInterrupt()},
        stays=error,
    )
    assert (outcome.interrupted, outcome.left_undone) == (True, error)
    assert len(outcome.measured[0].trials) == 3


def test_run_without_servers_says_why(tmp_path):
    outcome = make_outcome(make_setting(tmp_path), "hicache")
    error = KvflowError("port in use")
    session.run(outcome, DrawnRig(DrawnStage(TIMES), fault=error), Silent())
    assert outcome.error is error
    assert outcome.measured == []


@pytest.mark.parametrize(
    ("key", "groups"),
    [(lambda setting: 0, [["one", "two"]]), (lambda setting: setting.name, [["one"], ["two"]])],
    ids=["alike", "unlike"],
)
def test_run_opens_a_stage_for_settings_of_one_key(tmp_path, key, groups):
    settings = [make_setting(tmp_path, name) for name in ("one", "two")]
    outcome = make_outcome(settings[0], "hicache")
    outcome.suite = Suite("two settings", "", settings)
    rig = DrawnRig(DrawnStage(TIMES), key=key)
    session.run(outcome, rig, Silent())
    assert rig.opened_for == groups
    assert rig.stage.left == len(groups)


def test_run_over_its_budget_stops_after_the_least_repeats(tmp_path):
    outcome = make_outcome(make_setting(tmp_path), "hicache", 9, budget_s=0.0, least_repeats=4)
    _, stage = benched(outcome)
    assert len(stage.turns) == 4
