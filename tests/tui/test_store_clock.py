"""A server whose clock is set back while it is watched: what was before stays as long ago."""

from support.frames import EPOCH_S, make_frame, make_node

from kvflow.frames import Ages, Frame, Node, State
from kvflow.tui.store import Past, Store


def store_of(*frames: Frame) -> Store:
    store = Store()
    for frame in frames:
        store.apply(frame)
    return store


def told(seq: int, time_s: float, uptime_s: float, *nodes: Node, **known: object) -> Frame:
    """A frame of one start of a server, with what its two clocks show."""
    times = {"time_s": EPOCH_S + time_s, "uptime_s": uptime_s, "delta_since": seq - 1 or None}
    return make_frame(*nodes, seq=seq, **times, **known)


def test_charts_keep_their_points_where_the_servers_clock_was_set_back() -> None:
    store = store_of(*(told(seq, seq, seq) for seq in range(1, 5)))
    store.apply(told(5, 5 - 3600, 5, counters={"evicted_device_tokens": 70}))
    store.apply(told(6, 6 - 3600, 6))
    points = store.history.points
    assert [point.time_s - EPOCH_S + 3600 for point in points] == [1, 2, 3, 4, 5, 6]
    assert (points[4].interval_s, points[4].evicted_tokens_s) == (1.0, 70.0)


def test_ages_of_a_window_go_back_with_the_servers_clock() -> None:
    def aged(*hits: int) -> Ages:
        return Ages(bounds_s=(1.0,), hit_tokens=hits, evicted_tokens=(0, 0))

    store = store_of(
        told(1, 100, 100, ages=aged(5, 0)),
        told(2, 190, 190, ages=aged(7, 0)),
        told(3, 0, 200, ages=aged(7, 2)),
    )
    curves = store.history.ages(60)
    assert curves is not None
    assert curves.hit == (0.0, 1.0)


def test_timeline_keeps_its_lengths_where_the_servers_clock_was_set_back() -> None:
    store = store_of(
        told(1, 10, 10, make_node(1)),
        told(2, 20, 20, make_node(1, state=State.HOST)),
        told(3, 5, 30, make_node(1, state=State.LOADING)),
    )
    assert store.timeline(1) == (
        Past(State.DEVICE, EPOCH_S - 5),
        Past(State.HOST, EPOCH_S + 5),
    )
