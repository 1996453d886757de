import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvflow.tui.screen.chart import Part, area, bar, stacked
from kvflow.tui.screen.ink import Ink, width_of

amounts = st.floats(0, 100, allow_nan=False)
series = st.lists(amounts, max_size=60)
sizes = st.integers(1, 12)


def dots(cell: str) -> int:
    """Dots set in a braille cell."""
    return 0 if cell == " " else (ord(cell) - 0x2800).bit_count()


def rows_of(lines):
    return ["".join(piece.text for piece in line) for line in lines]


# area


@given(series, sizes, sizes, st.booleans(), st.booleans())
def test_area_any_values_fill_exactly_the_picture(values, width, height, downwards, plain):
    rows = area(values, width, height, 100, downwards=downwards, plain=plain)
    assert [len(row) for row in rows] == [width] * height


@given(series, sizes, sizes)
def test_area_dots_are_the_values_in_eighths_of_a_cell(values, width, height):
    rows = area(values, width, height, 100)
    most = height * 4
    shown = values[-2 * width :]
    expected = sum(min(max(round(v / 100 * most), 1), most) if v > 0 else 0 for v in shown)
    assert sum(dots(cell) for row in rows for cell in row) == expected


@given(series, sizes, sizes)
def test_area_downwards_has_as_many_dots_as_upwards(values, width, height):
    up = area(values, width, height, 100)
    down = area(values, width, height, 100, downwards=True)
    counted = [[dots(cell) for cell in row] for row in up]
    assert [[dots(cell) for cell in row] for row in down] == counted[::-1]


def test_area_stands_on_the_lower_edge():
    assert area([0, 0, 100, 50], 2, 2, 100) == [" ⡇", " ⣿"]


def test_area_downwards_hangs_from_the_upper_edge():
    assert area([100, 50], 1, 2, 100, downwards=True) == ["⣿", "⡇"]


def test_area_the_smallest_value_shows_as_one_dot():
    assert area([0, 0.001], 1, 1, 100) == ["⢀"]


def test_area_more_values_than_room_shows_the_latest():
    assert area([100, 100, 0, 0], 1, 1, 100) == [" "]


def test_area_without_a_top_is_blank():
    assert area([1, 2], 1, 1, 0) == [" "]


@pytest.mark.parametrize(("value", "cell"), [(0, " "), (25, "."), (50, ":"), (100, ":")])
def test_area_plain_draws_in_ascii(value, cell):
    assert area([value, value], 1, 1, 100, plain=True) == [cell]


# bar


@given(st.lists(amounts, min_size=1, max_size=5), st.integers(5, 60))
def test_bar_any_parts_fill_exactly_the_width(values, width):
    parts = [Part(value, "#", Ink.DEVICE) for value in values]
    assert width_of(bar(parts, 500, width)) == width


@given(st.lists(amounts, min_size=1, max_size=5), st.integers(20, 60))
def test_bar_every_part_of_more_than_nothing_is_seen(values, width):
    parts = [Part(value, "abcde"[i], Ink.DEVICE) for i, value in enumerate(values)]
    text = rows_of([bar(parts, sum(values), width)])[0]
    assert {part.glyph for part in parts if part.amount > 0} == set(text) - {" "}


def test_bar_is_drawn_to_scale():
    assert rows_of([bar([Part(30, "#", Ink.HOST), Part(20, "-", Ink.MUTED)], 100, 10)]) == [
        "###--     "
    ]


@pytest.mark.timeout(5)
def test_bar_of_parts_far_beyond_the_whole_shows_how_they_stand_to_each_other():
    parts = [Part(3 * 10**15, "#", Ink.HOST), Part(10**15, "-", Ink.MUTED)]
    assert rows_of([bar(parts, 100, 8)]) == ["######--"]


def test_bar_of_nothing_is_blank():
    assert rows_of([bar([Part(1, "#", Ink.HOST)], 0, 4)]) == ["    "]


# stacked


@given(st.lists(st.lists(st.floats(0, 0.3), max_size=3), max_size=12), sizes, sizes)
def test_stacked_any_columns_fill_exactly_the_picture(columns, width, height):
    parts = [[Part(amount, "#", Ink.HOST) for amount in column] for column in columns]
    assert [width_of(line) for line in stacked(parts, width, height)] == [width] * height


def test_stacked_parts_stand_on_top_of_each_other():
    column = [Part(0.5, "#", Ink.DEVICE), Part(0.25, "=", Ink.HOST)]
    assert rows_of(stacked([column], 1, 4)) == [" ", "=", "#", "#"]


def test_stacked_newest_column_stands_at_the_right_edge():
    columns = [[Part(1, glyph, Ink.HOST)] for glyph in "abc"]
    assert rows_of(stacked(columns, 2, 1)) == ["bc"]
    assert rows_of(stacked(columns, 5, 1)) == ["  abc"]
