import asyncio
import time
from itertools import pairwise

import msgspec
import pytest
from support.frames import make_frame, make_node

from kvflow.engine.http_errors import ControlError
from kvflow.engine.watchers import INTERVAL_S, Looks, Watchers


class Scheduler:
    """Answers as `snapshot.follow` does: a beginning, then a node a frame."""

    def __init__(self, *, left_out: bool = False) -> None:
        self.asked: list[int] = []
        self._left_out = left_out
        self._seq = 0

    async def ask(self, since: int) -> str:
        await asyncio.sleep(0)
        self.asked.append(since)
        self._seq += 1
        known = since if since and since == self._seq - 1 else None
        told = make_frame(
            *([make_node(self._seq)] if known else []),
            seq=self._seq,
            delta_since=known,
            nodes_left_out=self._left_out or known is None,
        )
        return msgspec.json.encode(told).decode()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_many_watchers_ask_the_scheduler_once_an_interval(clock):
    scheduler = Scheduler()
    watchers = Watchers(scheduler.ask, clock)
    await watchers.frame(0, 100)
    clock.now += INTERVAL_S
    await asyncio.gather(*(watchers.frame(0, 100) for _ in range(50)))
    assert scheduler.asked == [0, 1]
    clock.now += INTERVAL_S / 2
    await asyncio.gather(*(watchers.frame(0, 100) for _ in range(50)))
    assert scheduler.asked == [0, 1]
    clock.now += INTERVAL_S / 2
    await asyncio.gather(*(watchers.frame(0, 100) for _ in range(50)))
    assert scheduler.asked == [0, 1, 2]


async def test_reader_of_the_shortest_interval_gets_another_frame_each_time(clock):
    scheduler = Scheduler()

    async def takes_a_while(since: int) -> str:
        clock.now += 0.03
        return await scheduler.ask(since)

    watchers = Watchers(takes_a_while, clock)
    frames = []
    for look in range(6):
        clock.now = max(clock.now, 0.25 * look)
        frames.append((await watchers.frame(0, 100)).seq)
    assert frames == [1, 2, 3, 4, 5, 6]


async def test_scheduler_is_asked_sooner_while_it_has_not_told_all(clock):
    scheduler = Scheduler(left_out=True)
    watchers = Watchers(scheduler.ask, clock)
    for _ in range(5):
        await watchers.frame(0, 100)
        clock.now += INTERVAL_S / 8
    assert len(scheduler.asked) == 5


async def test_slow_watcher_gets_one_frame_with_all_that_happened(clock):
    scheduler = Scheduler()
    watchers = Watchers(scheduler.ask, clock)
    first = await watchers.frame(0, 100)
    for _ in range(5):
        clock.now += 2 * INTERVAL_S
        await watchers.frame(0, 100)
    late = await watchers.frame(first.seq, 100)
    assert (late.delta_since, [one.id for one in late.nodes]) == (1, [2, 3, 4, 5, 6])


class Tree:
    """Answers as `snapshot.take` does, of a tree with four nodes.

    Attributes:
        asked: for how many nodes, and when.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[int, float]] = []
        self.fails = False

    async def ask(self, most_nodes: int) -> str:
        self.asked.append((most_nodes, time.monotonic()))
        await asyncio.sleep(0)
        if self.fails:
            raise ControlError(504, "the scheduler does not answer")
        nodes = [make_node(one) for one in range(1, 5)][:most_nodes]
        told = make_frame(*nodes, seq=len(self.asked), nodes_left_out=most_nodes < 4)
        return msgspec.json.encode(told).decode()


async def test_looks_are_one_question_an_interval_however_many_look():
    tree = Tree()
    looks = Looks(tree.ask, 0.1)
    for _ in range(3):
        await asyncio.gather(*(looks.frame(4) for _ in range(50)))
    times = [at for _, at in tree.asked]
    assert len(times) == 3
    assert all(after - before >= 0.1 for before, after in pairwise(times))


async def test_look_is_of_a_moment_after_it_was_asked_for():
    tree, asked = Tree(), asyncio.Event()

    async def ask(most_nodes: int) -> str:
        asked.set()
        return await tree.ask(most_nodes)

    looks = Looks(ask, 0.01)
    early = asyncio.create_task(looks.frame(4))
    await asked.wait()
    late = await looks.frame(4)
    assert ((await early).seq, late.seq) == (1, 2)


async def test_looks_that_share_a_question_have_as_many_nodes_as_each_asked_for():
    tree = Tree()
    looks = Looks(tree.ask, 0.01)
    frames = await asyncio.gather(*(looks.frame(nodes) for nodes in (0, 2, 4, 3)))
    assert [most_nodes for most_nodes, _ in tree.asked] == [4]
    assert [len(frame.nodes) for frame in frames] == [0, 2, 4, 3]
    assert [frame.nodes_left_out for frame in frames] == [True, True, False, True]


async def test_look_that_is_given_up_leaves_the_others_theirs():
    tree = Tree()
    looks = Looks(tree.ask, 0.01)
    impatient = asyncio.create_task(looks.frame(4))
    other = asyncio.create_task(looks.frame(4))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await other).seq == 1


async def test_looks_at_a_scheduler_that_does_not_answer_fail_and_are_asked_for_anew():
    tree = Tree()
    looks = Looks(tree.ask, 0.01)
    tree.fails = True
    failed = await asyncio.gather(*(looks.frame(4) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in failed] == [ControlError] * 3
    assert len(tree.asked) == 1
    tree.fails = False
    assert (await looks.frame(4)).seq == 2


async def test_scheduler_that_does_not_answer_is_asked_again_next_time(clock):
    scheduler = Scheduler()
    answers = [False, True]

    async def ask(since: int) -> str:
        if not answers.pop(0):
            raise ControlError(504, "the scheduler does not answer")
        return await scheduler.ask(since)

    watchers = Watchers(ask, clock)
    with pytest.raises(ControlError):
        await watchers.frame(0, 100)
    assert (await watchers.frame(0, 100)).seq == 1
