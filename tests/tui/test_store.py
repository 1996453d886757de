import gc
import sys

import msgspec
import pytest
from support.frames import EPOCH_S, ChangingServer, busy_frame, make_frame, make_node

from kvflow.frames import Frame, Node, State, Why
from kvflow.tui.history import POINTS
from kvflow.tui.store import MOST_PARTS, RESTARTED_FRAMES, Past, Store, Subtree


def store_of(*frames: Frame) -> Store:
    store = Store()
    for frame in frames:
        store.apply(frame)
    return store


def test_store_has_the_latest_frame_and_counts_them() -> None:
    store = store_of(make_frame(seq=1), make_frame(seq=2, delta_since=1))
    assert store.frame is not None
    assert (store.frame.seq, store.version) == (2, 2)


def test_freshness_of_a_changed_node_fades_after_two_frames() -> None:
    store = store_of(
        make_frame(make_node(1), make_node(2)),
        make_frame(make_node(1, state=State.HOST), delta_since=1),
    )
    seen = []
    for seq in (2, 3, 4):
        seen.append((store.freshness(1), store.freshness(2)))
        store.apply(make_frame(delta_since=seq))
    assert seen == [(0, None), (1, None), (None, None)]


@pytest.mark.parametrize(
    "change",
    [
        {"state": State.LOADING},
        {"steps": 1},
        {"tokens": 7},
        {"locks": 1},
        {"hits": 1},
        {"why": Why.SPENT},
        {"agents": ("a/b",)},
    ],
)
def test_freshness_tells_every_change_that_shows(change: dict[str, object]) -> None:
    store = store_of(make_frame(make_node(1)), make_frame(make_node(1, **change), delta_since=1))
    assert store.freshness(1) == 0


def test_freshness_of_a_node_that_was_merely_looked_at_is_none() -> None:
    touched = make_node(1, last_access=99.0, children=3)
    store = store_of(make_frame(make_node(1)), make_frame(touched, delta_since=1))
    assert store.freshness(1) is None


def test_freshness_is_of_new_nodes_too_but_not_of_a_tree_that_is_still_arriving() -> None:
    store = store_of(make_frame(make_node(1), nodes_left_out=True))
    store.apply(make_frame(make_node(2), delta_since=1))
    assert (store.freshness(1), store.freshness(2)) == (None, None)
    store.apply(make_frame(make_node(3), delta_since=2))
    assert store.freshness(3) == 0


def test_ghost_of_a_node_that_left_stays_for_two_frames() -> None:
    store = store_of(make_frame(make_node(1), make_node(2)))
    seen = []
    store.apply(make_frame(delta_since=1, gone=(2,)))
    for seq in (2, 3):
        seen.append({node_id: ghost.frames for node_id, ghost in store.ghosts.items()})
        store.apply(make_frame(delta_since=seq))
    assert seen == [{2: 0}, {2: 1}]
    assert store.ghosts == {}


def test_ghosts_are_of_nodes_that_a_whole_tree_lacks_but_not_one_that_is_cut_off() -> None:
    store = store_of(make_frame(make_node(1), make_node(2)))
    store.apply(make_frame(make_node(1)))
    assert set(store.ghosts) == {2}
    store.apply(make_frame(nodes_left_out=True))
    assert set(store.ghosts) == {2}


def parts_of(*changed: Node, first_seq: int) -> list[Frame]:
    """A change that is told a node a frame."""
    last = len(changed) - 1
    return [
        make_frame(
            node, seq=first_seq + at, delta_since=first_seq + at - 1, nodes_left_out=at < last
        )
        for at, node in enumerate(changed)
    ]


def test_ghosts_are_of_nodes_that_leave_while_more_is_to_follow() -> None:
    store = store_of(make_frame(make_node(1), make_node(2)))
    store.apply(make_frame(delta_since=1, gone=(2,), nodes_left_out=True))
    assert set(store.ghosts) == {2}


def test_ghost_of_a_node_that_is_back_is_gone() -> None:
    store = store_of(make_frame(make_node(1)))
    store.apply(make_frame(delta_since=1, gone=(1,), nodes_left_out=True))
    store.apply(make_frame(make_node(1), delta_since=1))
    assert store.ghosts == {}


def test_freshness_is_of_every_new_node_of_a_large_change() -> None:
    store = store_of(make_frame())
    for frame in parts_of(*(make_node(one) for one in (1, 2, 3)), first_seq=2):
        store.apply(frame)
    assert [store.freshness(one) for one in (1, 2, 3)] == [0, 0, 0]


def test_freshness_is_of_no_node_of_a_tree_that_begins_anew_and_is_still_arriving() -> None:
    store = store_of(make_frame(make_node(1)), make_frame(seq=2, nodes_left_out=True))
    for frame in parts_of(make_node(1), make_node(2), first_seq=3):
        store.apply(frame)
    assert (store.freshness(1), store.freshness(2), store.ghosts) == (None, None, {})


def test_marks_fade_with_frames_however_many_parts_these_have() -> None:
    store = store_of(make_frame(make_node(1), make_node(2)))
    store.apply(make_frame(make_node(1, hits=1), seq=2, delta_since=1, gone=(2,)))
    seen = []
    for first_seq in (3, 6):
        for frame in parts_of(*(make_node(one) for one in (7, 8, 9)), first_seq=first_seq):
            store.apply(frame)
            seen.append((store.freshness(1), set(store.ghosts)))
    assert seen == [(1, {2})] * 3 + [(None, set())] * 3


def test_marks_fade_where_a_server_always_has_more_to_tell() -> None:
    store = store_of(make_frame(make_node(1)))
    store.apply(make_frame(make_node(1, hits=1), delta_since=1, nodes_left_out=True))
    for _ in range(3 * MOST_PARTS):
        store.apply(make_frame(delta_since=1, nodes_left_out=True))
    assert store.freshness(1) is None


def test_timeline_has_the_states_before_this_one() -> None:
    store = Store()
    states = [State.DEVICE, State.MIRRORED, State.HOST, State.LOADING, State.DEVICE]
    for at, state in enumerate(states):
        node = make_node(1, state=state)
        store.apply(make_frame(node, time_s=EPOCH_S + at, delta_since=at or None))
    assert store.timeline(1) == tuple(
        Past(state, EPOCH_S + at + 1) for at, state in enumerate(states[:-1])
    )
    assert store.timeline(2) == ()


def test_timeline_is_forgotten_with_its_node() -> None:
    store = store_of(
        make_frame(make_node(1)),
        make_frame(make_node(1, state=State.HOST), delta_since=1),
        make_frame(delta_since=2, gone=(1,)),
        make_frame(make_node(1), delta_since=3),
    )
    assert store.timeline(1) == ()


def test_restarted_server_begins_anew_and_keeps_the_charts() -> None:
    store = store_of(
        make_frame(make_node(1), make_node(2)),
        make_frame(make_node(1, state=State.HOST), delta_since=1, gone=(2,), time_s=EPOCH_S + 1),
        make_frame(make_node(1, state=State.LOADING), boot="second", time_s=EPOCH_S + 5),
    )
    assert set(store.tree.nodes) == {1}
    assert (store.ghosts, store.freshness(1), store.timeline(1)) == ({}, None, ())
    assert [point.time_s - EPOCH_S for point in store.history.points] == [0, 1, 5]


def test_store_remembers_for_some_frames_that_the_server_was_restarted() -> None:
    store = store_of(make_frame(boot="one"))
    seen = []
    for _ in range(RESTARTED_FRAMES + 1):
        seen.append(store.restarted)
        store.apply(make_frame(boot="two"))
    assert seen == [False, *[True] * RESTARTED_FRAMES]
    assert not store.restarted


def test_store_of_a_replay_that_goes_back_before_a_restart_knows_of_none() -> None:
    store = store_of(
        make_frame(boot="one"),
        make_frame(boot="two", time_s=EPOCH_S + 1),
        make_frame(boot="one"),
    )
    assert not store.restarted


def test_subtree_sums_nodes_and_tokens_below() -> None:
    store = store_of(
        make_frame(
            make_node(1, tokens=10),
            make_node(2, 1, tokens=20, state=State.HOST),
            make_node(3, 2, tokens=40, state=State.MIRRORED),
            make_node(4, tokens=80),
        )
    )
    assert store.subtree(1) == Subtree(nodes=3, tokens=70, device_tokens=50)
    assert store.subtree(4) == Subtree(nodes=1, tokens=80, device_tokens=80)
    store.apply(make_frame(delta_since=1, gone=(3,)))
    assert store.subtree(1) == Subtree(nodes=2, tokens=30, device_tokens=10)


def test_latest_change_is_what_the_frame_changed() -> None:
    before, after = make_node(1), make_node(1, hits=2)
    store = store_of(make_frame(before, make_node(2)), make_frame(after, delta_since=1, gone=(2,)))
    assert store.latest.before == {1: before}
    assert [node.id for node in store.latest.gone] == [2]


def test_frozen_store_stays_while_the_other_goes_on() -> None:
    store = store_of(make_frame(make_node(1)))
    store.apply(make_frame(make_node(1, state=State.HOST), delta_since=1))
    frozen = store.frozen()
    store.apply(make_frame(make_node(2), delta_since=2, gone=(1,)))
    assert set(frozen.tree.nodes) == {1}
    assert (frozen.freshness(1), len(frozen.timeline(1)), frozen.version) == (0, 1, 2)


def test_memory_does_not_grow_with_the_number_of_frames() -> None:
    store, server = Store(), ChangingServer(nodes=30, changes=20)
    store.apply(server.whole())
    deltas = [server.delta() for _ in range(50)]

    def blocks_after(first: int, last: int) -> int:
        for number in range(first, last):
            delta = deltas[number % len(deltas)]
            known = {"nodes": delta.nodes, "gone": delta.gone, "delta_since": delta.delta_since}
            store.apply(msgspec.structs.replace(busy_frame(at=number), **known))
        gc.collect()
        return sys.getallocatedblocks()

    history_is_full = blocks_after(1, POINTS + 100)
    assert blocks_after(POINTS + 100, 4000) < history_is_full + 1000
    assert len(store.history.points) == POINTS


def moved(second: int, state: State) -> Frame:
    return make_frame(make_node(1, state=state), time_s=EPOCH_S + second)


def test_timeline_forgets_what_lies_ahead_when_a_replay_goes_back() -> None:
    store = store_of(
        moved(0, State.DEVICE),
        moved(10, State.HOST),
        moved(20, State.LOADING),
        moved(15, State.HOST),
    )
    assert store.timeline(1) == (Past(State.DEVICE, EPOCH_S + 10),)


def test_timeline_goes_on_from_where_a_replay_went_back_to() -> None:
    store = store_of(moved(0, State.DEVICE), moved(10, State.HOST), moved(5, State.DEVICE))
    assert store.timeline(1) == ()
    store.apply(moved(10, State.HOST))
    assert store.timeline(1) == (Past(State.DEVICE, EPOCH_S + 10),)
