import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kvflow.tui.screen import figures


@given(st.integers(0, 10**14))
def test_tokens_any_number_takes_at_most_4_characters(count):
    assert len(figures.tokens(count)) <= 4


@given(st.integers(0, 10**14))
def test_size_any_number_takes_at_most_6_characters(count):
    assert len(figures.size(count)) <= 6


@pytest.mark.parametrize(("count", "text"), [(0, "0"), (63, "63"), (64, "64+")])
def test_steps_that_may_never_be_taken_are_marked(count, text):
    assert figures.steps(count) == text


@given(st.floats(0, 10**6))
def test_seconds_any_duration_takes_at_most_4_characters(count):
    assert len(figures.seconds(count)) <= 4


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (812, "812"), (999, "999"), (1152, "1.2k"), (15_400, "15k"), (1_300_000, "1.3M")],
)
def test_tokens_shows_magnitudes(count, shown):
    assert figures.tokens(count) == shown


@pytest.mark.parametrize(
    ("count", "shown"), [(812, "812B"), (1536, "1.5Ki"), (2**30, "1.0Gi"), (150 * 2**20, "150Mi")]
)
def test_size_shows_powers_of_1024(count, shown):
    assert figures.size(count) == shown


@pytest.mark.parametrize(
    ("gbps", "shown"),
    [(None, "-"), (0, "0.00"), (0.0049, "0.005"), (0.123, "0.12"), (12.34, "12.3"), (123.4, "123")],
)
def test_rate_shows_about_three_digits(gbps, shown):
    assert figures.rate(gbps) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(None, "-"), (0.42, "0.4s"), (12.3, "12s"), (300, "5m"), (7200, "2h"), (200_000, "2d")],
)
def test_seconds_shows_the_largest_unit(count, shown):
    assert figures.seconds(count) == shown


@pytest.mark.parametrize(("part", "shown"), [(None, "-"), (0.004, "0%"), (1, "100%")])
def test_share_shows_percent(part, shown):
    assert figures.share(part) == shown


@pytest.mark.parametrize(
    ("width", "shown"),
    [(20, "app/planner"), (11, "app/planner"), (10, "a…/planner"), (9, "planner"), (5, "plan…")],
)
def test_agent_without_room_gives_up_the_client_first(width, shown):
    assert figures.agent("app/planner", width, "…") == shown


@given(st.text("ab/漢", max_size=12), st.integers(0, 14))
def test_agent_any_name_takes_no_more_than_the_width(name, width):
    assert cell_len(figures.agent(name, width, "…")) <= width
