from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recordings import recorded
from support.top_scene import frame_at

from kvflow.tui.compare import Difference, Figure, Side, Unit, differences, document, side_at
from kvflow.tui.recording import Recording

SHARE = Figure("x", "x", Unit.SHARE, 1)
LESS = Figure("x", "x", Unit.SHARE, -1)
TOKENS = Figure("x", "x", Unit.TOKENS)


def side(first: int, now: int, **other) -> Side:
    return Side("file", "label", frame_at(first), frame_at(now, **other))


def changed(moment: int, **counters):
    frame = frame_at(moment)
    return msgspec.structs.replace(
        frame, counters=msgspec.structs.replace(frame.counters, **counters)
    )


def values(a: Side, b: Side) -> dict[str, tuple[float | None, float | None]]:
    return {one.figure.name: (one.a, one.b) for one in differences(a, b)}


def test_differences_count_from_the_beginning_of_the_recording():
    found = values(side(10, 30), side(0, 30))
    assert found["evicted"] == (700 * 20, 700 * 30)
    assert found["calls"] == (2 * 20 + 10, 2 * 30 + 15)
    assert found["prefetched"] == (20_000, 30_000)


def test_differences_of_prompts_are_shares_of_what_was_admitted():
    a = Side("f", "l", changed(0), changed(0, hit_device_tokens=60, hit_host_tokens=30))
    found = values(a, a)
    assert found["device_hits"] == (60 / 90, 60 / 90)
    assert found["host_hits"] == (30 / 90, 30 / 90)
    assert found["computed"] == (0.0, 0.0)


def test_differences_of_regrets_are_shares_of_what_was_evicted_from_both_tiers():
    first = changed(0, evicted_device_tokens=100, evicted_host_tokens=50, regretted_tokens=10)
    evicted = {"evicted_device_tokens": 300, "evicted_host_tokens": 250}
    a = Side("f", "l", first, changed(0, **evicted, regretted_tokens=310))
    assert values(a, a)["regretted"] == (0.75, 0.75)


def test_differences_of_regrets_are_more_than_all_where_the_evictions_came_before_the_beginning():
    first = changed(0, evicted_device_tokens=100, regretted_tokens=0)
    a = Side("f", "l", first, changed(0, evicted_device_tokens=110, regretted_tokens=20))
    assert values(a, a)["regretted"] == (2.0, 2.0)


def test_differences_of_what_was_prefetched_before_the_beginning_are_no_more_than_all_of_it():
    first = changed(0, prefetched_tokens=100, prefetched_used_tokens=0)
    a = Side("f", "l", first, changed(0, prefetched_tokens=150, prefetched_used_tokens=120))
    assert values(a, a)["used"] == (1.0, 1.0)


def test_differences_where_nothing_happened_are_not_known():
    found = values(side(5, 5), side(5, 5))
    assert found["device_hits"] == found["used"] == found["regretted"] == (None, None)
    assert found["calls"] == (0, 0)


def test_differences_after_a_restart_count_from_the_restart():
    again = side(10, 3, boot="two")
    assert again.restarted
    assert values(again, again)["evicted"] == (2100, 2100)


def test_differences_without_a_host_tier_have_no_copies():
    assert values(side(0, 5, traffic=None), side(0, 5))["h2d"][0] is None


@pytest.mark.parametrize(
    ("figure", "a", "b", "words", "verdict"),
    [
        (SHARE, 0.5, 0.57, "7 points more, better", 1),
        (SHARE, 0.5, 0.49, "1 point less, worse", -1),
        (LESS, 0.5, 0.4, "10 points less, better", 1),
        (SHARE, 0.5, 0.503, "the same", 0),
        (SHARE, None, 0.5, "only B has any", 0),
        (SHARE, 0.5, None, "only A has any", 0),
        (SHARE, None, None, "", 0),
        (TOKENS, 1000, 1200, "20% more", 0),
        (TOKENS, 1000, 900, "10% less", 0),
        (TOKENS, 1000, 2500, "2.5 times A's", 0),
        (TOKENS, 1000, 250, "0.25 times A's", 0),
        (TOKENS, 1000, 151_000, "150 times A's", 0),
        (TOKENS, 1, 1_234_567, "1,200,000 times A's", 0),
        (TOKENS, 10**6, 12, "0.000012 times A's", 0),
        (TOKENS, 0, 0, "the same", 0),
        (TOKENS, 0, 5, "only B has any", 0),
        (TOKENS, 5, 0, "only A has any", 0),
    ],
)
def test_difference_is_told_in_words(figure, a, b, words, verdict):
    difference = Difference(figure, a, b)
    assert (difference.words(), difference.verdict) == (words, verdict)


SOME = st.one_of(st.none(), st.floats(0, 1))


@given(SOME, SOME, st.sampled_from([SHARE, LESS, TOKENS]))
def test_difference_the_other_way_round_has_the_opposite_verdict(a, b, figure):
    one, other = Difference(figure, a, b), Difference(figure, b, a)
    assert one.verdict == -other.verdict
    assert one.is_same == other.is_same
    assert ("better" in one.words()) == ("worse" in other.words())


def test_document_has_both_sides_and_every_difference():
    told = document(side(0, 10), side(0, 20), 10.0)
    assert (told["schema_version"], told["seconds"]) == (1, 10.0)
    assert told["a"]["mode"] == "prefetch"
    by_figure = {one["figure"]: one for one in told["differences"]}
    assert by_figure["evicted"] == {
        "figure": "evicted",
        "unit": "tokens",
        "a": 7000,
        "b": 14_000,
        "verdict": None,
        "words": "2 times A's",
    }
    assert told["b"]["figures"]["evicted"] == 14_000


def test_side_at_a_time_has_the_frame_that_was_shown_then(tmp_path):
    path = recorded(tmp_path / "r", [frame_at(moment) for moment in range(10)])
    found = side_at(Path("r"), Recording(path), 4.5)
    assert (found.first.seq, found.now.seq) == (1, 5)
