"""Calls that go away, or are told to try again, in every state: nothing of them is left."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import support.engine  # noqa: F401 - before SGLang
from sglang.srt.managers.schedule_batch import FINISH_LENGTH
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache
from support.audit import check_slots, check_tree
from support.going_round import AGENTS, GoingRound

from kvflow.policy import trust

pytestmark = pytest.mark.engine

TIMES, FEWER_TIMES = 1000, 200
LOOK_EVERY = 50


@pytest.fixture(autouse=True)
def all_hints_are_believed(monkeypatch):
    """Agents speak at random here, against what is foretold."""
    monkeypatch.setattr(trust, "_LEAST", 0.0)


class Scene(GoingRound):
    """One call at a time is brought into a state, and then goes away."""

    def __init__(self, page: int = 1) -> None:
        room = 2 * max(64, 4 * page) + max(64, 3 * page)  # two prefixes, and pages for two calls
        super().__init__(page, "full", tokens=room, max_defer=2)
        self.turn = 0
        for agent in range(AGENTS):
            self.serve(agent)

    def waiting(self) -> Any:
        return self.arrive(self.turn)

    def deferred(self) -> Any:
        self._prefetch_behind_a_running_call()
        req = self.arrive(self.turn)
        before = self.cache.deferrals.passes
        self.mini.prefill()
        assert self.cache.deferrals.passes == before + 1
        assert req in self.mini.waiting_queue
        return req

    def loading(self) -> Any:
        """It runs and joins a prefetch that has not arrived."""
        self._prefetch_behind_a_running_call()
        req = self.arrive(self.turn)
        for _ in range(3):  # as often as it may be passed over, and once more
            self.mini.prefill()
        assert req in self.mini.running
        assert self.cache.tree_core.is_arriving(req.last_node)
        return req

    def loading_for_itself(self) -> Any:
        """It runs, and what it has loaded has not been acknowledged."""
        self.mini.drain()
        self.turn = self.absent()
        req = self.arrive(self.turn)
        self.mini.prefill()
        assert req in self.mini.running
        assert self.mini.hits[-1][2] > 0
        assert self.cache.ongoing_load_back
        return req

    def running(self) -> Any:
        self.mini.drain()
        req = self.arrive(self.turn, answer=6)
        self.mini.prefill()
        self.mini.decode()
        assert req in self.mini.running
        return req

    def _prefetch_behind_a_running_call(self) -> None:
        """The next agent's prefix is on its way while another call runs."""
        self.mini.drain()
        self.turn = self.absent() - 1
        self.arrive(self.turn, answer=4)
        self.cache.check_hicache_events()
        self.mini.prefill()
        self.turn += 1
        if not self.cache.tree_core.is_prefetching(self.end_of(self.turn)):
            self.cache.check_hicache_events()  # in the first pass it gave way to the call
        assert self.cache.tree_core.is_prefetching(self.end_of(self.turn))


def nothing_is_left(scene: Scene) -> None:
    scene.mini.drain()
    check_tree(scene.cache)
    check_slots(scene.mini)
    scene.cache.sanity_check()
    core, cache = scene.cache.tree_core, scene.cache
    assert cache.protected_size() == 0
    assert not cache.degraded
    assert (core._loading, core._ahead, cache.deferrals._of) == ({}, {}, {})
    assert not list(cache.calls.in_flight())
    assert not any(view.in_flight for view in cache.calls.table.runs())


def go_away(
    state: str, how: Callable[[Scene, Any], None], seed: int, page: int = 1, times: int = TIMES
) -> Scene:
    scene, rng = Scene(page), random.Random(seed)
    for number in range(times):
        scene.turn = rng.randrange(AGENTS)
        req = getattr(scene, state)()
        how(scene, req)
        if rng.random() < 0.5:
            scene.mini.acknowledge()
        if number % LOOK_EVERY == 0:
            nothing_is_left(scene)
    nothing_is_left(scene)
    return scene


def abort(scene: Scene, req: Any) -> None:
    scene.mini.abort(req)


def prefetch_still_works(scene: Scene) -> None:
    before = scene.outcomes.issued
    for turn in range(2 * AGENTS):
        scene.serve(turn)
    assert scene.outcomes.issued > before
    # What was learned from calls that went away may let the end of a prefix come a little late.
    assert all(there >= 0.75 * scene.fixed for _, there, _ in scene.mini.hits[-AGENTS:])


STATES = ["waiting", "deferred", "loading", "loading_for_itself", "running"]


@pytest.mark.parametrize("state", STATES)
def test_call_that_goes_away_leaves_nothing(state):
    scene = go_away(state, abort, seed=1)
    prefetch_still_works(scene)


@pytest.mark.parametrize("page", [16, 64])
@pytest.mark.parametrize("state", STATES)
def test_call_that_goes_away_leaves_nothing_whatever_the_page(state, page):
    scene = go_away(state, abort, seed=4, page=page, times=FEWER_TIMES)
    prefetch_still_works(scene)


@pytest.mark.parametrize("state", ["loading", "running"])
def test_call_that_is_retracted_comes_back_and_leaves_nothing(state):
    scene = go_away(state, lambda scene, req: scene.mini.retract(req), seed=2)
    prefetch_still_works(scene)


def test_call_that_there_is_no_memory_for_leaves_nothing():
    scene = go_away("running", lambda scene, req: scene.mini.give_up(req), seed=3)
    prefetch_still_works(scene)


def test_call_whose_load_is_refused_is_computed_and_leaves_nothing(monkeypatch):
    """Invariant 27."""
    scene = Scene()
    agent, loads = scene.absent(), scene.cache.traffic.h2d_operations
    with monkeypatch.context() as refusing:
        refusing.setattr(scene.cache, "load_back", lambda *_, **__: False)
        req = scene.serve(agent)
    assert req.finished()
    assert scene.mini.hits[-1][2] > 0  # it was found on the host
    assert scene.on_device(agent) == scene.fixed
    assert scene.cache.traffic.h2d_operations == loads
    nothing_is_left(scene)
    prefetch_still_works(scene)


def test_turn_of_a_streaming_session_that_keeps_its_slots_is_over(monkeypatch):
    scene = Scene()
    req = scene.running()
    monkeypatch.setattr(UnifiedRadixCache, "claim_kv_row", lambda cache, req: True)
    req.finished_reason = FINISH_LENGTH(length=1)
    assert scene.cache.claim_kv_row(req)
    monkeypatch.undo()
    assert not list(scene.cache.calls.in_flight())
    scene.mini.abort(req)
    nothing_is_left(scene)
