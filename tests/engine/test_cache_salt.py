"""Tenants with different salts never share KV by any path, and those with the same one do."""

import random

import pytest
import support.engine  # noqa: F401 - before SGLang
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm
from support.mini_scheduler import MiniScheduler
from support.real_cache import build, nodes, tokens_to
from support.tags import by

from kvflow.engine import salts
from kvflow.engine.marks import Prefix

pytestmark = pytest.mark.engine

FIXED = 64
POOL = 2 * FIXED + 40  # two prefixes and what a running call adds


def scheduler(mode: str = "prefetch") -> MiniScheduler:
    return MiniScheduler(build(tokens=POOL, host_ratio=6.0, settings={"mode": mode}))


def prompt(agent: int, tail: int = 0) -> list[int]:
    return [1000 * (agent + 1) + i for i in range(FIXED)] + [tail, 9]


def speak(
    mini: MiniScheduler,
    agent: int,
    salt: str | None,
    tail: int,
    steps: dict[str, int],
    fixed: int | None = FIXED,
    run: str = "run",
) -> tuple[int, int]:
    """A whole call. Returns what it found on the device and on the host, in tokens."""
    tag = by(f"a{agent}", fixed, steps=steps, run=run)
    req = mini.serve(prompt(agent, tail), tag, cache_salt=salt)
    return next((device, host) for rid, device, host in mini.hits if rid == req.rid)


def push_out(mini: MiniScheduler) -> None:
    """Others fill the device, while a0 is known to be far."""
    for agent in (1, 2):
        for tail in range(2):
            speak(mini, agent, "green", tail, {"a0": 9})


def on_device(mini: MiniScheduler, salt: str) -> int:
    """Tokens of a0's prefix that are there, as this tenant's."""
    return sum(
        len(node.key)
        for node in nodes(mini.cache)
        if node.key.cache_salt == salt
        and not node.evicted
        and tokens_to(node) == prompt(0)[: len(tokens_to(node))]
        and len(tokens_to(node)) <= FIXED
    )


@pytest.fixture(params=["off", "evict", "prefetch", "full"])
def mini(request):
    """The red tenant's a0 has spoken."""
    mini = scheduler(request.param)
    speak(mini, 0, "red", 0, {})
    yield mini
    mini.drain()
    mini.cache.sanity_check()


@pytest.mark.parametrize("other", ["blue", None])
def test_device_hit_is_for_the_same_salt_only(mini, other):
    assert speak(mini, 0, other, 1, {}) == (0, 0)
    assert speak(mini, 0, "red", 2, {})[0] >= FIXED


@pytest.mark.parametrize("other", ["blue", None])
def test_host_hit_is_for_the_same_salt_only(mini, other):
    push_out(mini)
    assert on_device(mini, "red") == 0
    assert speak(mini, 0, other, 1, {}) == (0, 0)
    assert speak(mini, 0, "red", 2, {})[1] >= FIXED


def say_who_is_next(mini: MiniScheduler, salt: str) -> None:
    """A call of this tenant, in the run before: a0 comes next. Then what is fetched meanwhile."""
    tag = by("a1", FIXED, steps={"a0": 1, "a2": 9})
    mini.arrive(prompt(1, 5), tag, answer=8, cache_salt=salt)
    mini.prefill()
    while mini.running:
        mini.acknowledge()
        mini.decode()


def test_steps_of_one_tenants_run_bring_nothing_of_another_tenants():
    mini = scheduler()
    for salt in ("red", "blue"):
        mini.serve(prompt(0), by("a0", FIXED, run=salt, final=True), cache_salt=salt)
    push_out(mini)
    assert (on_device(mini, "red"), on_device(mini, "blue")) == (0, 0)
    say_who_is_next(mini, "blue")
    assert (on_device(mini, "red"), on_device(mini, "blue")) == (0, FIXED)
    mini.drain()


def test_prefix_of_a_tenant_whose_runs_are_forgotten_is_expected_no_more(monkeypatch):
    monkeypatch.setattr(salts, "_MOST_RUNS", 1)
    mini = scheduler()
    core = mini.cache.tree_core
    mark = Prefix("app", "a0", None, "red")
    mini.serve(prompt(0), by("a0", FIXED, run="r1", steps={"a0": 3}), cache_salt="red")
    assert core.ranks.steps(core.ranks.end(mark)) == 3
    mini.serve(prompt(1), by("a1", FIXED, run="r2", steps={"a0": 2}), cache_salt="blue")
    assert core.ranks.steps(core.ranks.end(mark)) == mini.cache.untagged_steps
    mini.serve(prompt(2), by("a1", FIXED, run="r2", steps={"a0": 1}), cache_salt="blue")
    assert core.ranks.steps(core.ranks.end(mark)) == mini.cache.untagged_steps


@pytest.mark.parametrize("mode", ["prefetch", "full"])
@pytest.mark.parametrize(("fixed", "calls"), [(FIXED, 1), (None, 3)], ids=["told", "learned"])
def test_prefetch_for_one_tenant_is_no_hit_of_another(mode, fixed, calls):
    mini = scheduler(mode)
    for tail in range(calls):
        speak(mini, 0, "red", tail, {}, fixed)
    push_out(mini)
    assert on_device(mini, "red") == 0
    say_who_is_next(mini, "red")
    assert on_device(mini, "red") == FIXED
    assert speak(mini, 0, "blue", 5, {"a1": 9}, fixed, run="another") == (0, 0)
    assert speak(mini, 0, "red", 6, {"a1": 9}, fixed)[0] >= FIXED


@calm
@given(st.integers(0, 1 << 30), st.sampled_from(["evict", "prefetch", "full"]))
def test_no_history_lets_a_call_find_more_than_its_own_tenant_left(seed, mode):
    mini, chance = scheduler(mode), random.Random(seed)
    left: dict[str | None, list[list[int]]] = {"red": [], "blue": [], None: []}
    for _ in range(15):
        agent, salt = chance.randrange(3), chance.choice([*left])
        steps = {f"a{other}": chance.randrange(6) for other in range(3)}
        mine = prompt(agent, tail=chance.randrange(3))
        fixed = chance.choice([FIXED, None])
        req = mini.serve(mine, by(f"a{agent}", fixed, steps=steps), cache_salt=salt)
        found = next(device + host for rid, device, host in mini.hits if rid == req.rid)
        assert found <= max((shared(mine, other) for other in left[salt]), default=0)
        left[salt].append(mine + list(req.output_ids))


def shared(one: list[int], other: list[int]) -> int:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length
