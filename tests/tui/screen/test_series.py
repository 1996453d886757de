import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvflow.tui.history import Point
from kvflow.tui.screen.series import rounded_up, series, spacing


def point(time_s, value, interval_s=1.0):
    given = {**dict.fromkeys(Point._fields, 0), "interval_s": interval_s}
    return Point(**{**given, "time_s": float(time_s), "h2d_gbps": value})


def values(points, window_s=60, most=60):
    return series(points, lambda point: point.h2d_gbps, window_s=window_s, most=most)


def test_series_of_a_point_a_second_is_their_values():
    assert values([point(second, second) for second in range(5)]) == [0, 1, 2, 3, 4]


def test_series_with_several_points_an_interval_is_their_mean():
    points = [point(second, second) for second in range(10, 16)]
    assert values(points, window_s=6, most=3) == [10.5, 12.5, 14.5]


def test_series_interval_without_a_point_has_the_value_of_the_next():
    assert values([point(0, 1.0), point(4, 3.0)]) == [1.0, 3.0, 3.0, 3.0, 3.0]


def test_series_unknown_values_are_blank():
    assert values([point(0, 1.0), point(1, None), point(2, 5.0)]) == [1.0, 0.0, 5.0]


def test_series_unknown_values_beside_known_ones_of_an_interval_do_not_count():
    points = [point(10, None), point(11, 4.0)]
    assert values(points, window_s=6, most=3) == [4.0]


def test_series_time_before_an_unknown_value_is_blank():
    assert values([point(0, 1.0), point(3, None), point(4, 5.0)]) == [1.0, 0.0, 0.0, 0.0, 5.0]


def test_series_time_before_a_server_that_has_started_anew_is_blank():
    points = [point(0, 1.0), point(3, 2.0, interval_s=None), point(4, 5.0)]
    assert values(points) == [1.0, 0.0, 0.0, 2.0, 5.0]


@given(st.lists(st.integers(0, 100), unique=True, max_size=40), st.integers(1, 60))
def test_series_old_values_keep_their_height_as_time_goes_by(seconds, most):
    points = [point(second, second % 7) for second in sorted(seconds)]
    before = values(points, most=most)
    after = values([*points, point(160, 2.0)], window_s=60, most=most)
    step = spacing(60, most)
    last = int(points[-1].time_s // step) if points else 0
    for distance, value in enumerate(reversed(before)):
        age = 160 // step - last + distance
        if distance > 0 and age < len(after):
            assert after[-1 - age] == value


@given(st.lists(st.integers(0, 500), unique=True, max_size=40), st.integers(1, 60))
def test_series_never_has_more_values_than_asked_for(seconds, most):
    assert len(values([point(second, 1.0) for second in sorted(seconds)], most=most)) <= most


@pytest.mark.parametrize(("most", "seconds"), [(60, 1), (56, 2), (30, 2), (200, 1)])
def test_spacing_covers_the_window_in_whole_seconds(most, seconds):
    assert spacing(60, most) == seconds


@pytest.mark.parametrize(
    ("value", "top"), [(0, 0), (0.9, 1), (1.0, 1), (1.2, 2), (3, 5), (7, 10), (0.03, 0.05)]
)
def test_rounded_up_is_the_next_1_2_or_5(value, top):
    assert rounded_up(value) == pytest.approx(top)
