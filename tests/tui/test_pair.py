import pytest
from support.recordings import recorded
from support.top_scene import frame_at

from kvflow.tui.pair import Pair
from kvflow.tui.recording import Recording
from kvflow.tui.source import Replayable


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def pair(tmp_path, clock):
    """A recording of 4 s and one of 9 s."""
    a, b = (
        Recording(recorded(tmp_path / str(length), [frame_at(at) for at in range(length)]))
        for length in (5, 10)
    )
    return Pair(a, b, clock=clock)


def positions(pair):
    return [side.position_s for side in pair.sides]


def test_pair_is_as_long_as_the_longer_one(pair):
    assert isinstance(pair, Replayable)
    assert pair.duration_s == 9.0


def test_pair_shows_both_at_the_same_time_until_the_shorter_one_ends(pair, clock):
    clock.now += 3
    assert positions(pair) == [3.0, 3.0]
    clock.now += 4
    assert positions(pair) == [4.0, 7.0]


def test_pair_that_goes_back_behind_the_end_of_the_shorter_one_is_in_step_again(pair, clock):
    clock.now += 7
    pair.seek(pair.position_s - 5)
    assert positions(pair) == [2.0, 2.0]


def test_pause_holds_both_and_goes_on_in_step(pair, clock):
    clock.now += 2
    pair.paused = True
    clock.now += 50
    assert positions(pair) == [2.0, 2.0]
    pair.paused = False
    clock.now += 1
    assert positions(pair) == [3.0, 3.0]
    assert not any(side.paused for side in pair.sides)


def test_speed_is_that_of_both(pair, clock):
    pair.speed = 2.0
    clock.now += 1.5
    assert positions(pair) == [3.0, 3.0]


def test_speed_that_changes_after_the_shorter_one_has_ended_keeps_them_in_step(pair, clock):
    clock.now += 6
    pair.speed = 0.5
    clock.now += 2
    assert positions(pair) == [4.0, 7.0]


def test_step_goes_to_a_frame_of_the_longer_one_in_both_and_pauses(pair, clock):
    clock.now += 2.5
    pair.step(1)
    assert positions(pair) == [3.0, 3.0]
    assert pair.paused
    pair.step(-2)
    assert positions(pair) == [1.0, 1.0]


def test_status_is_that_of_the_longer_one(pair, clock):
    clock.now += 6
    assert pair.status.label == "REPLAY 0:06/0:09"
