import pytest
from support.bench import make_result

from kvflow.bench.compare import changes, differences, read
from kvflow.bench.report import folder
from kvflow.bench.result import Document, settings_of
from kvflow.bench.stats import Claim
from kvflow.errors import UsageError


def slower(document: Document, by: float) -> Document:
    """The same result with runs that took so many times as long."""
    arms = {
        name: arm.model_copy(
            update={
                "run_s": arm.run_s.model_copy(update={"mean": arm.run_s.mean * by}),
                "run_s_by_repeat": {n: s * by for n, s in arm.run_s_by_repeat.items()},
            }
        )
        for name, arm in document.arms.items()
    }
    return document.model_copy(update={"arms": arms})


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
    for change in changes([found], [found]):
        assert change.run.mean == pytest.approx(1)
        assert change.run.claim is Claim.NO_DIFFERENCE


def test_changes_say_what_has_become_slower(found):
    by_arm = {change.arm: change for change in changes([found], [slower(found, 9)])}
    assert set(by_arm) == {"lru", "hicache", "full"}
    full = by_arm["full"]
    assert full.after_s == pytest.approx(9 * full.before_s)
    assert full.run.mean == pytest.approx(1 / 9)
    assert full.ttft.mean == pytest.approx(1)


def test_changes_pass_over_arms_that_one_result_lacks(found):
    lacking = found.model_copy(update={"arms": {"full": found.arms["full"]}})
    assert [change.arm for change in changes([found], [lacking])] == ["full"]


def test_changes_of_results_with_nothing_in_common_are_refused(found):
    other = found.model_copy(update={"recipe": "another"})
    with pytest.raises(UsageError, match="in common") as error:
        changes([found], [other])
    assert "lru, hicache, full" in error.value.why


def test_differences_tell_what_was_not_measured_alike(found):
    other = found.model_copy(
        update={"environment": {"cores": 8}, "setup": {**found.setup, "link_ratio": 0.1}}
    )
    assert differences([found], [other]) == [
        "cores: 2 before, 8 after",
        "link_ratio: 0.5 before, 0.1 after",
    ]
    assert differences([found], [found]) == []
