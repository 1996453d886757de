import pytest

from kvflow.tui.words import bytes_of, clock, plural


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps"), (12345, "12,345 steps")]
)
def test_plural_goes_with_the_number(number: int, words: str) -> None:
    assert plural(number, "step") == words


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (10_200, "10 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (1.5 * 1024**3, "1.5 GiB"),
        (5000 * 1024**4, "5000 TiB"),
    ],
)
def test_bytes_have_the_unit_that_makes_them_short(number: float, words: str) -> None:
    assert bytes_of(number) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0:00"), (59.9, "0:59"), (187, "3:07"), (3723, "1:02:03")]
)
def test_clock_has_hours_only_when_there_are_some(seconds: float, words: str) -> None:
    assert clock(seconds) == words
