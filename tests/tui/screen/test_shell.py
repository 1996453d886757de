import pytest

from kvflow.tui.screen.shell import beside

LADDER = (0.25, 1.0, 4.0)


@pytest.mark.parametrize(
    ("value", "by", "found"),
    [
        (1.0, 1, 4.0),
        (1.0, -1, 0.25),
        (0.25, 2, 4.0),
        (1.0, 9, 4.0),
        (4.0, 1, 4.0),
        (0.25, -1, 0.25),
    ],
)
def test_beside_goes_from_place_to_place_and_no_further_than_the_ends(value, by, found):
    assert beside(LADDER, value, by) == found


@pytest.mark.parametrize(("value", "by", "found"), [(2.0, 1, 4.0), (2.0, -1, 1.0)])
def test_beside_from_between_two_places_goes_to_the_next_one(value, by, found):
    assert beside(LADDER, value, by) == found


@pytest.mark.parametrize(("value", "by"), [(60.0, 1), (0.1, -1)])
def test_beside_from_past_the_ladder_goes_no_further(value, by):
    assert beside(LADDER, value, by) == value


@pytest.mark.parametrize(("value", "by", "found"), [(60.0, -1, 4.0), (0.1, 1, 0.25)])
def test_beside_from_past_the_ladder_comes_back_to_its_end(value, by, found):
    assert beside(LADDER, value, by) == found
