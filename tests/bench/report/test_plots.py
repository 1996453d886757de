from xml.etree import ElementTree

import pytest
from support.bench import make_answer, make_result, make_setting, make_trial

from kvflow.bench.report import plots
from kvflow.bench.result import settings_of
from kvflow.bench.session import Measured


@pytest.mark.parametrize("names", [("flow",), ("one", "two")])
def test_write_draws_pictures_that_can_be_read(tmp_path, names):
    result, measured = make_result(tmp_path, *names)
    for name in plots.write(tmp_path, settings_of(result), measured):
        root = ElementTree.parse(tmp_path / name).getroot()
        assert root.tag.endswith("svg")


def test_write_of_one_arm_has_nothing_to_compare(tmp_path):
    result, measured = make_result(tmp_path, arms="full")
    assert plots.write(tmp_path, settings_of(result), measured) == ["hits.svg", "timeline.svg"]


def test_write_twice_gives_the_same_pictures(tmp_path):
    result, measured = make_result(tmp_path)
    contents = []
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
        names = plots.write(tmp_path / part, settings_of(result), measured)
        contents.append([(tmp_path / part / name).read_bytes() for name in names])
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("device", "host", "colour"),
    [(100, 0, plots.DEVICE), (20, 80, plots.HOST), (0, 30, plots.ANEW), (0, 0, plots.ANEW)],
)
def test_colour_of_a_call_is_where_most_of_its_prefix_was(tmp_path, device, host, colour):
    trial = make_trial(make_setting(tmp_path), "full", 0, make_answer(device=device, host=host))
    assert plots._colour(trial.calls[0]) == colour


def test_timeline_shows_the_last_turn_of_each_arm_that_went_through(tmp_path):
    setting = make_setting(tmp_path)
    trials = [make_trial(setting, arm, n) for n in (0, 1) for arm in ("full", "lru")]
    trials[-1].whole = False
    found = plots._latest(Measured(setting, trials=trials).trials)
    assert [(trial.arm, trial.repeat) for trial in found] == [("lru", 0), ("full", 1)]
