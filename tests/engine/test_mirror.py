from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm
from support.frames import make_eviction, make_frame, make_node

from kvflow.engine import mirror as module
from kvflow.engine.mirror import Mirror
from kvflow.frames import Frame, Node

MANY = 1000


def told(*frames: Frame) -> Mirror:
    """A mirror that was told a beginning and these changes."""
    mirror = Mirror()
    mirror.apply(make_frame(seq=1, nodes_left_out=True))
    for one in frames:
        mirror.apply(one)
    return mirror


def delta(seq: int, *nodes: int, **fields: Any) -> Frame:
    return make_frame(*map(make_node, nodes), seq=seq, delta_since=seq - 1, **fields)


def ids(answer: Frame) -> list[int]:
    return [one.id for one in answer.nodes]


def test_who_knows_nothing_gets_all_as_a_key_frame():
    answer = told(delta(2, 1, 2), delta(3, 3)).answer(0, MANY)
    assert (answer.delta_since, answer.seq, ids(answer)) == (None, 3, [1, 2, 3])
    assert not answer.nodes_left_out


def test_who_knows_a_frame_gets_what_changed_after_it():
    mirror = told(delta(2, 1, 2), delta(3, 2), delta(4, gone=(1,)))
    answer = mirror.answer(2, MANY)
    assert (answer.delta_since, answer.seq, ids(answer), answer.gone) == (2, 4, [2], (1,))


def test_who_knows_the_last_frame_gets_nothing():
    answer = told(delta(2, 1)).answer(2, MANY)
    assert (answer.delta_since, answer.seq, answer.nodes, answer.gone) == (2, 2, (), ())


def test_who_knows_a_frame_that_never_was_gets_a_key_frame():
    mirror = told(delta(2, 1))
    assert mirror.answer(3, MANY).delta_since is None
    assert mirror.answer(0, MANY).delta_since is None


def test_frames_before_a_new_beginning_are_known_no_more():
    mirror = told(delta(2, 1))
    mirror.apply(make_frame(seq=7, nodes_left_out=True))
    mirror.apply(delta(8, 5))
    assert (mirror.answer(2, MANY).delta_since, ids(mirror.answer(2, MANY))) == (None, [5])
    assert mirror.answer(7, MANY).delta_since == 7


def test_frame_that_follows_another_than_the_last_begins_anew():
    mirror = told(delta(2, 1))
    mirror.apply(make_frame(make_node(9), seq=5, delta_since=4))
    assert ids(mirror.answer(2, MANY)) == [9]


def test_change_that_another_server_tells_begins_anew():
    mirror = told(delta(2, 1))
    mirror.apply(delta(3, 2, boot="another"))
    answer = mirror.answer(2, MANY)
    assert (answer.delta_since, ids(answer)) == (None, [2])


def test_answer_holds_no_more_than_asked_for_in_whole_frames():
    mirror = told(delta(2, 1, 2), delta(3, 3, 4), delta(4, 5))
    first = mirror.answer(0, 3)
    assert (first.seq, ids(first), first.nodes_left_out) == (2, [1, 2], True)
    second = mirror.answer(first.seq, 3)
    assert (second.seq, ids(second), second.nodes_left_out) == (4, [3, 4, 5], False)


def test_answer_holds_a_whole_frame_at_least():
    answer = told(delta(2, 1, 2)).answer(0, 0)
    assert ids(answer) == [1, 2]


def test_more_is_said_to_follow_while_the_scheduler_has_not_told_all():
    mirror = told(delta(2, 1, nodes_left_out=True))
    assert mirror.answer(0, MANY).nodes_left_out
    assert not mirror.complete


def test_who_is_behind_more_than_is_remembered_gets_a_key_frame(monkeypatch):
    monkeypatch.setattr(module, "MOST_GONE", 2)
    mirror = told(delta(2, 1, 2, 3, 4), delta(3, gone=(1,)), delta(4, gone=(2, 3)))
    assert mirror.answer(2, MANY).delta_since is None
    assert mirror.answer(3, MANY).gone == (2, 3)
    assert len(mirror._gone) == 2


def test_evictions_are_whole_with_the_latest_of_each():
    mirror = told(
        delta(2, evictions=(make_eviction(1), make_eviction(2))),
        delta(3, evictions=(make_eviction(1, regret=True), make_eviction(3))),
    )
    assert mirror.answer(3, 0).evictions == (
        make_eviction(1, regret=True),
        make_eviction(2),
        make_eviction(3),
    )


def test_evictions_that_are_remembered_are_bounded():
    mirror = told(*(delta(seq, evictions=(make_eviction(seq),)) for seq in range(2, 700)))
    assert [one.seq for one in mirror.answer(0, 0).evictions] == list(range(188, 700))


STEPS = st.lists(
    st.tuples(
        st.lists(st.integers(1, 12), max_size=5, unique=True),  # nodes told
        st.lists(st.integers(1, 12), max_size=3, unique=True),  # nodes gone
        st.booleans(),  # whether it begins anew
        st.integers(0, 6),  # most nodes of the answer
        st.booleans(),  # whether the reader asks
    ),
    max_size=30,
)


@calm
@given(steps=STEPS)
def test_reader_that_is_told_that_nothing_is_left_out_has_what_the_mirror_has(steps):
    mirror, tree = told(), dict[int, Node]()
    seen: dict[int, Node] = {}
    since, fresh = 0, 100
    for number, (changed, gone, anew, most, asks) in enumerate(steps):
        seq = number + 2
        if anew:
            tree = {}
            mirror.apply(make_frame(seq=seq, nodes_left_out=False))
        else:
            left = [one for one in gone if one in tree]
            news = [make_node(one, hits=seq) for one in changed if one not in left]
            tree = {key: value for key, value in tree.items() if key not in left}
            # SGLang never uses a node's id again.
            news = [one if one.id in tree else make_node(fresh + one.id, hits=seq) for one in news]
            fresh += 20
            tree |= {one.id: one for one in news}
            mirror.apply(make_frame(*news, seq=seq, delta_since=seq - 1, gone=tuple(left)))
        if asks:
            answer = mirror.answer(since, most)
            if answer.delta_since is None:
                seen = {}
            seen = {key: value for key, value in seen.items() if key not in answer.gone}
            seen |= {one.id: one for one in answer.nodes}
            since = answer.seq
            if not answer.nodes_left_out:
                assert seen == tree
