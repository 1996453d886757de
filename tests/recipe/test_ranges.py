import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm

from kvflow.recipe.ranges import Range

NUMBERS = st.integers(0, 999_999_999)


@calm
@given(st.lists(NUMBERS, min_size=2, max_size=2).map(sorted))
def test_range_written_and_read_is_the_same(ends: list[int]) -> None:
    whole = Range(*ends)
    assert Range.read(whole.written()) == whole


@calm
@given(NUMBERS)
def test_range_of_a_number_holds_only_that(number: int) -> None:
    assert Range.read(number) == Range.read(str(number)) == Range(number, number)
    assert Range.read(number).is_one


def test_range_with_blanks_around_the_dots_is_read() -> None:
    assert Range.read("1 .. 4") == Range(1, 4)


@pytest.mark.parametrize(
    "value", [True, -1, 1.5, None, "", "1..", "..4", "1-4", "a", "1..4\n", "٣", 10**9, [1, 4]]
)
def test_range_of_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="neither a whole number nor a range"):
        Range.read(value)


def test_range_backwards_is_refused_with_the_right_way_round() -> None:
    with pytest.raises(ValueError, match=r"4\.\.1 runs backwards: write 1\.\.4"):
        Range.read("4..1")
