import pytest
from support.frames import EPOCH_S, busy_frame, make_frame, make_traffic

from kvflow.frames import Ages, Frame, Pool
from kvflow.tui.history import POINTS, AgeCurves, History, hit_shares


def history_of(*frames: Frame) -> History:
    history = History()
    for frame in frames:
        history.add(frame)
    return history


def at(seconds: float, **known: object) -> Frame:
    return make_frame(time_s=EPOCH_S + seconds, **known)


def ages_of(bounds_s: tuple[float, ...], hit: tuple[int, ...], evicted: tuple[int, ...]) -> Ages:
    return Ages(bounds_s=bounds_s, hit_tokens=hit, evicted_tokens=evicted)


def test_rates_are_differences_over_the_interval() -> None:
    history = history_of(
        at(0, traffic=make_traffic(h2d_bytes=10**9, d2h_bytes=0)),
        at(
            2,
            traffic=make_traffic(h2d_bytes=4 * 10**9, d2h_bytes=10**9),
            counters={"evicted_device_tokens": 500, "prefetched_tokens": 100},
        ),
    )
    point = history.points[-1]
    assert (point.h2d_gbps, point.d2h_gbps) == (1.5, 0.5)
    assert (point.evicted_tokens_s, point.prefetched_tokens_s) == (250.0, 50.0)


def test_rates_of_the_first_frame_are_unknown() -> None:
    [point] = history_of(at(0, traffic=make_traffic())).points
    assert (point.h2d_gbps, point.d2h_gbps, point.evicted_tokens_s) == (None, None, None)


def test_rates_without_a_host_tier_are_unknown() -> None:
    point = history_of(at(0), at(1)).points[-1]
    assert (point.h2d_gbps, point.host_locked, point.host_evictable) == (None, 0.0, 0.5)
    alone = history_of(at(0, host=None)).points[-1]
    assert (alone.host_locked, alone.host_evictable, alone.host_used) == (None, None, None)


def test_counters_that_fell_give_no_rate() -> None:
    history = history_of(
        at(0, traffic=make_traffic(h2d_bytes=10**9), counters={"hit_device_tokens": 5}),
        at(1, traffic=make_traffic(h2d_bytes=10**6), counters={"computed_tokens": 9}),
    )
    assert history.points[-1].h2d_gbps is None
    assert history.points[-1].computed is None


def test_hit_shares_are_of_the_prompts_in_the_interval() -> None:
    history = history_of(
        at(0, counters={"hit_device_tokens": 1000}),
        at(
            1,
            counters={"hit_device_tokens": 1060, "hit_host_tokens": 30, "computed_tokens": 10},
        ),
        at(
            2,
            counters={"hit_device_tokens": 1060, "hit_host_tokens": 30, "computed_tokens": 10},
        ),
    )
    first, busy, idle = history.points
    assert (first.device_hits, first.host_hits, first.computed) == (None, None, None)
    assert (busy.device_hits, busy.host_hits, busy.computed) == (0.6, 0.3, 0.1)
    assert (idle.device_hits, idle.host_hits, idle.computed) == (None, None, None)


def test_hit_shares_since_the_start_add_up() -> None:
    counters = busy_frame().counters
    assert hit_shares(counters) == (0.6, 0.2, 0.2)
    assert hit_shares(make_frame().counters) is None


def test_pool_shares_are_of_the_capacity() -> None:
    pool = Pool(capacity=200, free=50, evictable=60, locked=40)
    [point] = history_of(at(0, device=pool)).points
    assert (point.device_locked, point.device_evictable, point.device_used) == (0.2, 0.3, 0.75)


def test_pool_without_room_is_not_full() -> None:
    [point] = history_of(at(0, device=Pool(capacity=0, free=0, evictable=0, locked=0))).points
    assert (point.device_locked, point.device_evictable, point.device_used) == (0.0, 0.0, 0.0)


def test_frames_that_come_fast_share_a_point() -> None:
    history = history_of(
        at(0, traffic=make_traffic()),
        at(0.25, traffic=make_traffic(h2d_bytes=10**9)),
        at(0.5, traffic=make_traffic(h2d_bytes=10**9)),
        at(1, traffic=make_traffic(h2d_bytes=2 * 10**9)),
    )
    assert [(p.time_s - EPOCH_S, p.h2d_gbps) for p in history.points] == [(0, None), (1, 2.0)]


def test_frame_from_before_ends_what_followed_it() -> None:
    history = history_of(*(at(seconds, traffic=make_traffic()) for seconds in (0, 1, 2, 3, 1.5)))
    assert [point.time_s - EPOCH_S for point in history.points] == [0, 1, 1.5]
    assert history.points[-1].h2d_gbps is None


@pytest.mark.parametrize("back_to", [1, 2])
def test_frame_of_a_moment_that_was_there_takes_its_place(back_to: int) -> None:
    history = history_of(*(at(seconds) for seconds in (0, 1, 2, 3)))
    history.add(at(back_to))
    assert [point.time_s - EPOCH_S for point in history.points] == list(range(back_to + 1))


def test_frame_that_comes_twice_changes_nothing() -> None:
    frames = [at(seconds, traffic=make_traffic(h2d_bytes=seconds * 10**9)) for seconds in (0, 1)]
    history = history_of(*frames, frames[-1])
    assert [point.h2d_gbps for point in history.points] == [None, 1.0]


def test_history_keeps_fifteen_minutes() -> None:
    history = history_of(*(at(seconds) for seconds in range(POINTS + 10)))
    assert len(history.points) == POINTS == 15 * 60
    assert history.points[0].time_s == EPOCH_S + 10


def test_restart_compares_nothing_with_the_server_before() -> None:
    history = history_of(at(0, traffic=make_traffic(), ages=ages_of((1.0,), (1, 1), (1, 1))))
    history.restart()
    assert history.ages() is None
    history.add(at(1, traffic=make_traffic(h2d_bytes=10**9)))
    point = history.points[-1]
    assert (point.h2d_gbps, point.interval_s) == (None, None)


def test_hit_shares_of_a_server_that_has_just_started_anew_count_from_its_start() -> None:
    history = history_of(at(0, counters={"hit_device_tokens": 1000}))
    history.restart()
    counters = {"hit_device_tokens": 30, "computed_tokens": 10}
    history.add(at(5, counters=counters))
    history.add(at(6, counters=counters))
    assert [point.device_hits for point in history.points] == [None, 0.75, None]


def test_hit_shares_where_a_replay_goes_back_before_a_restart_are_unknown() -> None:
    history = history_of(at(0), at(9))
    history.restart()
    history.add(at(5, counters={"hit_device_tokens": 30}))
    assert history.points[-1].device_hits is None


def test_point_tells_how_long_its_interval_was() -> None:
    history = history_of(at(0), at(1), at(61))
    assert [point.interval_s for point in history.points] == [None, 1.0, 60.0]


BOUNDS = (1.0, 10.0)


def aged(seconds: float, hit: tuple[int, ...], evicted: tuple[int, ...]) -> Frame:
    return at(seconds, ages=ages_of(BOUNDS, hit, evicted))


def test_ages_are_shares_of_all_time_without_a_window() -> None:
    history = history_of(aged(0, (5, 5, 0), (0, 0, 0)), aged(1, (6, 3, 1), (0, 1, 3)))
    assert history.ages() == AgeCurves(BOUNDS, (0.6, 0.3, 0.1), (0.0, 0.25, 0.75))


def test_ages_of_a_window_are_those_of_its_seconds() -> None:
    history = history_of(
        aged(0, (90, 0, 0), (9, 0, 0)),
        aged(100, (100, 0, 0), (9, 0, 0)),
        aged(130, (101, 1, 0), (9, 0, 0)),
    )
    assert history.ages(60) == AgeCurves(BOUNDS, (0.5, 0.5, 0.0), None)


def test_ages_with_other_bounds_than_before_are_those_of_all_time() -> None:
    history = history_of(at(0, ages=ages_of((5.0,), (1, 0), (0, 1))), aged(1, (1, 0, 0), (0, 0, 1)))
    assert history.ages(60) == AgeCurves(BOUNDS, (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


@pytest.mark.parametrize("window_s", [None, 60.0])
def test_ages_that_a_server_does_not_tell_are_none(window_s: float | None) -> None:
    assert history_of(at(0)).ages(window_s) is None
