"""A reader of frames that follows one another has the tree, whatever happens to it."""

import random

import pytest
import support.engine  # noqa: F401 - before SGLang
from support.mini_scheduler import MiniScheduler
from support.prefixes import PREFIX, PROMPT, evict_all, scheduler
from support.real_cache import build
from support.tags import by
from support.traffic import SIZES, Traffic

from kvflow.engine import snapshot_limits
from kvflow.engine.snapshot import follow, take
from kvflow.engine.watch import IDLE_TICKS
from kvflow.frames import Frame, Node

pytestmark = pytest.mark.engine

NEVER = 0  # a `since` that no frame has


class Reader:
    """Follows a scheduler as a console does."""

    def __init__(self, mini: MiniScheduler) -> None:
        self._mini = mini
        self._since = NEVER
        self.nodes: dict[int, Node] = {}
        self.key_frames = 0

    def read(self) -> Frame:
        """The next frame, applied."""
        frame = follow(self._mini, self._since)
        if frame.delta_since is None:
            self.nodes.clear()
            self.key_frames += 1
        for node in frame.gone:
            self.nodes.pop(node, None)
        self.nodes |= {node.id: node for node in frame.nodes}
        self._since = frame.seq
        return frame

    def catch_up(self) -> None:
        """Read until nothing is left out."""
        while self.read().nodes_left_out:
            pass

    def check(self) -> None:
        """It has the tree, node by node, field by field."""
        whole = take(self._mini, snapshot_limits.MOST_NODES)
        assert not whole.nodes_left_out
        assert self.nodes == {node.id: node for node in whole.nodes}
        assert whole.tree_nodes == len(self.nodes)


@pytest.fixture
def few_a_frame(monkeypatch) -> int:
    """So few nodes a frame that most frames leave some out."""
    monkeypatch.setattr("kvflow.engine.snapshot.MOST_CHANGED_NODES", 7)
    return 7


@pytest.mark.parametrize("policy", ["write_through", "write_back"])
@pytest.mark.parametrize("page", SIZES)
def test_reader_has_the_tree_after_any_history(page, policy, few_a_frame):
    tokens, longest = SIZES[page]
    cache = build(page, tokens=tokens, host_ratio=1.5, policy=policy)
    mini = MiniScheduler(cache, chunk=longest // 2)
    traffic = Traffic(mini, 5, longest, tagged=0.7, switches=True)
    chance = random.Random(page)
    reader = Reader(mini)
    for _ in range(200):
        for _ in range(chance.choice((1, 1, 2, 8))):
            traffic.step()
        frame = reader.read()
        assert len(frame.nodes) <= few_a_frame
        if chance.random() < 0.5:
            reader.catch_up()
            reader.check()
    reader.catch_up()
    reader.check()
    assert not cache.degraded
    assert reader.key_frames > 1  # of the flushes, switches and pauses


def test_reader_has_the_tree_of_a_cache_without_a_host_tier():
    tokens, longest = SIZES[1]
    mini = MiniScheduler(build(1, tokens=tokens, host_ratio=0), chunk=longest // 2)
    traffic = Traffic(mini, 6, longest, tagged=0.7, switches=False)
    reader = Reader(mini)
    for _ in range(150):
        traffic.step()
        reader.catch_up()
        reader.check()


# A watch


def busy() -> MiniScheduler:
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30, steps={"a": 3}))
    mini.serve([*PREFIX, 77], by("a", 30, steps={"a": 2}))
    return mini


def begin(mini: MiniScheduler) -> Frame:
    """The frame with which a reader has the tree, if that is small."""
    frame = follow(mini, follow(mini, NEVER).seq)
    assert not frame.nodes_left_out
    return frame


def test_first_frame_begins_anew_and_the_next_has_the_tree():
    mini = busy()
    first = follow(mini, NEVER)
    assert (first.delta_since, first.nodes, first.nodes_left_out) == (None, (), True)
    second = follow(mini, first.seq)
    assert second.delta_since == first.seq
    assert {node.id for node in second.nodes} == {node.id for node in take(mini, 100).nodes}


def test_next_frame_says_nothing_where_nothing_happened():
    mini = busy()
    first = begin(mini)
    second = follow(mini, first.seq)
    assert (second.delta_since, second.nodes, second.gone) == (first.seq, (), ())
    assert second.seq > first.seq


def test_next_frame_has_the_nodes_that_changed_and_those_that_are_gone():
    mini = busy()
    first = begin(mini)
    mini.serve([5] * 12)
    second = follow(mini, first.seq)
    assert [node.tokens for node in second.nodes] == [12, 3]  # a prompt and its answer
    evict_all(mini.cache)
    mini.cache.evict_host(1000)
    third = follow(mini, second.seq)
    assert {node.id for node in second.nodes} < set(third.gone)


@pytest.mark.parametrize("off_by", [-1, 1, 10**9])
def test_since_that_is_not_the_last_frame_gives_a_key_frame(off_by):
    mini = busy()
    frame = follow(mini, NEVER)
    assert follow(mini, frame.seq + off_by).delta_since is None


def test_look_from_the_side_does_not_disturb_who_follows():
    mini = busy()
    first = begin(mini)
    mini.serve([5] * 12)
    take(mini, 100)
    second = follow(mini, first.seq)
    assert second.delta_since == first.seq
    assert [node.tokens for node in second.nodes] == [12, 3]


def test_key_frame_is_spread_over_frames(few_a_frame):
    mini = scheduler()
    for number in range(20):
        mini.serve([number, number])
    frame, seen = follow(mini, NEVER), set()
    while frame.nodes_left_out:
        frame = follow(mini, frame.seq)
        assert frame.delta_since is not None
        seen |= {node.id for node in frame.nodes}
    assert seen == {node.id for node in take(mini, 100).nodes}


def test_flush_gives_a_key_frame_of_an_empty_tree():
    mini = busy()
    frame = follow(mini, NEVER)
    mini.flush()
    frame = follow(mini, frame.seq)
    assert (frame.delta_since, frame.nodes, frame.tree_nodes) == (None, (), 0)


def test_switch_of_the_mode_gives_a_key_frame():
    mini = busy()
    frame = follow(mini, NEVER)
    mini.cache.switch("off")
    assert follow(mini, frame.seq).delta_since is None


def test_nothing_is_kept_while_nobody_watches():
    mini = busy()
    watch = mini.cache.tree_core.watch
    assert not watch.on
    assert not watch._dirty
    follow(mini, NEVER)
    assert watch.on
    for _ in range(IDLE_TICKS):
        mini.cache.tick()
    mini.serve([5] * 12)
    assert not watch.on
    assert not watch._dirty


# Evictions and prefetches


def test_evictions_are_news_to_who_begins_and_then_only_if_they_are_new():
    mini = busy()
    evict_all(mini.cache)
    first = follow(mini, NEVER)
    second = follow(mini, first.seq)
    assert second.evictions == take(mini, 0).evictions
    assert second.evictions
    assert follow(mini, second.seq).evictions == ()


def test_eviction_that_is_regretted_is_news_again():
    mini = busy()
    evict_all(mini.cache)
    second = begin(mini)
    mini.serve(PROMPT)
    third = follow(mini, second.seq)
    assert third.evictions
    assert all(record.regret for record in third.evictions)
    assert {record.seq for record in third.evictions} <= {r.seq for r in second.evictions}
