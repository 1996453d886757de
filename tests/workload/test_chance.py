from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kvflow.graph import Out
from kvflow.workload.chance import draw_arrows, draw_whole, generator

KEYS = range(2000)


def test_generator_with_equal_keys_draws_equally_whatever_was_drawn_before() -> None:
    first = generator(7, 0, "planner", 1).random()
    generator("something else").random()
    assert generator(7, 0, "planner", 1).random() == first


def test_generator_with_another_key_draws_otherwise() -> None:
    assert generator(7, 1, "planner", 1).random() != generator(7, 0, "planner", 1).random()


def test_generator_stream_is_the_same_on_every_machine() -> None:
    # The value is part of what makes a published bench repeatable.
    assert generator(7, 0, "planner", 0, "next").random() == 0.9056140811196502


@given(st.integers(0, 50), st.integers(0, 50), st.integers())
def test_draw_whole_stays_within_both_ends(low: int, more: int, key: int) -> None:
    assert low <= draw_whole(low, low + more, key) <= low + more


def test_draw_whole_reaches_every_number_of_its_range_alike() -> None:
    counts = Counter(draw_whole(1, 4, key) for key in KEYS)
    assert sorted(counts) == [1, 2, 3, 4]
    assert all(400 < count < 600 for count in counts.values())


def test_draw_arrows_without_p_are_all_taken() -> None:
    arrows = (Out("a", None), Out("b", None))
    assert draw_arrows(arrows, "key") == list(arrows)


def test_draw_arrows_takes_alternatives_in_their_shares_and_leaves_the_rest() -> None:
    arrows = (Out("a", 0.3), Out("always", None), Out("b", 0.5))
    counts = Counter(tuple(out.target for out in draw_arrows(arrows, key)) for key in KEYS)
    assert set(counts) == {("a", "always"), ("always", "b"), ("always",)}
    for taken, share in ((("a", "always"), 0.3), (("always", "b"), 0.5), (("always",), 0.2)):
        assert abs(counts[taken] / len(KEYS) - share) < 0.05


def test_draw_arrows_of_ten_tenths_always_takes_one() -> None:
    arrows = tuple(Out(str(number), 0.1) for number in range(10))
    assert all(len(draw_arrows(arrows, key)) == 1 for key in KEYS)
