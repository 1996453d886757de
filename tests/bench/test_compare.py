import pytest
from support.bench import make_result

from kvflow.bench.compare import Change, changes, differences, read
from kvflow.bench.report import folder
from kvflow.bench.result import Document, settings_of
from kvflow.bench.stats import Claim, unpaired
from kvflow.errors import UsageError


def slower(document: Document, by: float, *names: str) -> Document:
    """The same result with runs that took so many times as long, of some arms or of all."""
    arms = {
        name: arm.model_copy(
            update={
                "run_s": arm.run_s.model_copy(update={"mean": arm.run_s.mean * by}),
                "run_s_by_repeat": {n: s * by for n, s in arm.run_s_by_repeat.items()},
            }
        )
        if name in (names or document.arms)
        else arm
        for name, arm in document.arms.items()
    }
    return document.model_copy(update={"arms": arms})


def only(document: Document, *names: str) -> Document:
    """The same result with some of its arms."""
    return document.model_copy(update={"arms": {name: document.arms[name] for name in names}})


def in_setup(document: Document, **changes: object) -> Document:
    """The same result under another setup."""
    return document.model_copy(update={"setup": {**document.setup, **changes}})


def by_arm(before: Document, after: Document) -> dict[str, Change]:
    return {change.arm: change for change in changes([before], [after])}


@pytest.fixture
def found(tmp_path) -> Document:
    return settings_of(make_result(tmp_path)[0])[0]


def test_read_takes_a_results_folder_or_a_file(tmp_path):
    result, measured = make_result(tmp_path, "one", "two")
    folder.fill(tmp_path, result, measured)
    assert read(tmp_path) == read(tmp_path / "summary.json") == settings_of(result)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"schema_version": 99}'])
def test_read_of_something_else_is_refused(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UsageError, match="is no result of kvflow bench"):
        read(tmp_path / "x.json")


def test_read_of_nothing_asks_for_a_results_folder(tmp_path):
    with pytest.raises(UsageError, match="holds no result") as error:
        read(tmp_path / "none")
    assert "results folder" in error.value.hint


def test_changes_of_a_result_against_itself_claim_nothing(found):
    for arm in ("lru", "full"):
        change = by_arm(found, found)[arm]
        assert change.run.mean == pytest.approx(1)
        assert change.run.claim is Claim.NO_DIFFERENCE


def test_changes_claim_nothing_where_the_machine_slowed_every_arm_alike(found):
    change = by_arm(found, slower(found, 9))["full"]
    assert change.run.mean == pytest.approx(1)
    assert change.run.claim is Claim.NO_DIFFERENCE


def test_changes_say_which_arm_has_become_slower_than_the_baseline(found):
    change = by_arm(found, slower(found, 9, "full"))["full"]
    assert change.run.mean == pytest.approx(1 / 9)
    assert change.run.claim is Claim.SLOWER
    assert change.ttft.mean == pytest.approx(1)


def test_changes_have_the_interval_of_welch_on_ratios_within_a_repeat(found):
    after = slower(found, 9, "full")
    full, base = (found.arms[name].run_s_by_repeat for name in ("full", "hicache"))
    ratios = [full[repeat] / base[repeat] for repeat in full]
    assert by_arm(found, after)["full"].run == pytest.approx(
        unpaired([9 * ratio for ratio in ratios], ratios)
    )


def test_changes_pair_only_repeats_that_the_baseline_has_as_well(found):
    base = found.arms["hicache"]
    fewer = base.model_copy(update={"run_s_by_repeat": {0: base.run_s_by_repeat[0]}})
    cut = found.model_copy(update={"arms": {**found.arms, "hicache": fewer}})
    assert by_arm(found, cut)["full"].run.claim is Claim.UNKNOWN


def test_changes_have_no_ratio_where_no_repeat_has_arm_and_baseline(found):
    base = found.arms["hicache"]
    other = base.model_copy(update={"run_s_by_repeat": {9: 1.0}})
    apart = found.model_copy(update={"arms": {**found.arms, "hicache": other}})
    assert by_arm(found, apart)["full"].run is None


def test_changes_have_plain_times_of_every_arm(found):
    change = by_arm(found, slower(found, 9))["hicache"]
    assert change.after_s == pytest.approx(9 * change.before_s)
    assert change.times == pytest.approx(1 / 9)


def test_changes_claim_nothing_of_the_baseline_itself(found):
    change = by_arm(found, found)["hicache"]
    assert (change.run, change.ttft) == (None, None)


@pytest.mark.parametrize(
    ("common", "base"),
    [
        (("lru", "hicache", "full"), "hicache"),
        (("lru", "full"), "lru"),
        (("full",), "full"),
    ],
)
def test_changes_are_over_the_baseline_that_both_results_have(found, common, base):
    assert {change.base for change in changes([found], [only(found, *common)])} == {base}


def test_changes_pass_over_arms_that_one_result_lacks(found):
    assert list(by_arm(found, only(found, "full"))) == ["full"]


def test_changes_of_results_with_nothing_in_common_are_refused(found):
    other = found.model_copy(update={"recipe": "another"})
    with pytest.raises(UsageError, match="in common") as error:
        changes([found], [other])
    assert "lru, hicache, full" in error.value.why


def test_differences_tell_what_was_not_measured_alike(found):
    other = in_setup(found, link_ratio=0.1).model_copy(update={"environment": {"cores": 8}})
    assert differences([found], [other]) == [
        "cores: 2 before, 8 after",
        "link_ratio: 0.5 before, 0.1 after",
    ]
    assert differences([found], [found]) == []


@pytest.mark.parametrize(
    "name",
    [
        "model", "device", "dtype", "concurrency", "fixed_tokens", "plain_lanes", "pool_tokens",
        "link_ratio", "output_tokens", "dynamic_tokens", "runs",
    ],
)  # fmt: skip
def test_differences_look_at_everything_that_sets_times(found, name):
    other = in_setup(found, **{name: "another"})
    assert differences([found], [other]) == [
        f"{name}: {found.setup.get(name)} before, another after"
    ]


def test_differences_look_at_every_setting_that_both_results_have(tmp_path):
    before = settings_of(make_result(tmp_path, "one", "two", "three")[0])
    after = [in_setup(before[2], runs=9), in_setup(before[1], runs=8)]
    assert differences(before, after) == [
        "three: runs: 1 before, 9 after",
        "two: runs: 1 before, 8 after",
    ]


def test_differences_tell_of_the_machine_once_for_all_settings(tmp_path):
    before = settings_of(make_result(tmp_path, "one", "two")[0])
    after = [one.model_copy(update={"environment": {"cores": 8}}) for one in before]
    assert differences(before, after) == ["cores: 2 before, 8 after"]
