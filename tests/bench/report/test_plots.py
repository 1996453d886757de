from xml.etree import ElementTree

import pytest
from support.bench import make_result

from kvflow.bench.report import plots
from kvflow.bench.result import settings_of


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
