"""Status-aware scheduling on a real cache: who is passed over, for how long, and who is not."""

import pytest
import support.engine  # noqa: F401 - before SGLang
from sglang.srt.mem_cache.pool_host import mha
from support.mini_scheduler import MiniScheduler
from support.real_cache import build
from support.tags import by

from kvflow.engine.cpu.link import Link

pytestmark = pytest.mark.engine

FIXED, AGENTS = 64, 4
MOST = 3
ROW_BYTES = 2 * 2 * 2 * 4


def prompt(agent: int, tail: int = 0) -> list[int]:
    return [1000 * (agent + 1) + i for i in range(FIXED)] + [7, tail, 9]


def tag(agent: int):
    return by(
        f"a{agent}", FIXED, steps={f"a{i}": (i - agent) % AGENTS or AGENTS for i in range(AGENTS)}
    )


@pytest.fixture
def arriving(monkeypatch):
    """A scheduler in mode full, and the agent whose prefix is on its way to the device."""
    settings = {"mode": "full", "policy": {"max_defer": MOST}}
    scheduler = MiniScheduler(build(tokens=240, host_ratio=4.0, settings=settings))
    for agent in range(AGENTS):
        scheduler.serve(prompt(agent), tag(agent))
    link = Link(lambda: FIXED * ROW_BYTES / 0.3 / 1e9)
    monkeypatch.setattr(mha, "transfer_kv_direct", link.transfer_kv_direct)
    core = scheduler.cache.tree_core
    for turn in range(AGENTS):
        scheduler.arrive(prompt(turn, 1), tag(turn), answer=40)
        scheduler.prefill()
        scheduler.cache.check_hicache_events()
        coming = (turn + 1) % AGENTS
        end = core.ranks.end(("app", f"a{coming}", None, None))
        if core.is_arriving(end):
            break
        scheduler.drain()
    else:
        raise AssertionError("no prefetch was started")
    yield scheduler, coming
    scheduler.drain()
    scheduler.cache.sanity_check()


def test_call_whose_prefix_is_arriving_is_passed_over_while_others_run(arriving):
    scheduler, coming = arriving
    req = scheduler.arrive(prompt(coming, 2), tag(coming))
    assert scheduler.prefill() == []
    assert scheduler.waiting_queue == [req]
    assert scheduler.cache.deferrals.passes == 1


def test_call_is_passed_over_a_bounded_number_of_times(arriving):
    scheduler, coming = arriving
    req = scheduler.arrive(prompt(coming, 2), tag(coming))
    for _ in range(MOST):
        assert scheduler.prefill() == []
    assert scheduler.prefill() == [req]
    assert scheduler.hits[-1][1:] == (FIXED, 0)


def test_others_keep_their_order_and_are_not_held_up(arriving):
    scheduler, coming = arriving
    scheduler.arrive(prompt(coming, 2), tag(coming))
    plain = [scheduler.arrive([5000 + n, 1, 2], answer=1) for n in range(3)]
    assert scheduler.prefill() == plain


def test_plain_call_that_reads_what_is_arriving_is_not_held_up(arriving):
    scheduler, coming = arriving
    plain = scheduler.arrive(prompt(coming, 3), answer=1)
    assert scheduler.prefill() == [plain]
    assert scheduler.cache.deferrals.passes == 0


def test_call_is_passed_over_once_where_what_waits_besides_has_no_room(arriving):
    scheduler, coming = arriving
    for req in list(scheduler.running):
        scheduler.abort(req)
    req = scheduler.arrive(prompt(coming, 2), tag(coming), answer=1)
    too_large = scheduler.arrive([9000 + n for n in range(300)], answer=1)
    assert scheduler.prefill() == []
    assert scheduler.prefill() == [req]
    scheduler.abort(too_large)


def test_nothing_is_passed_over_when_nothing_else_could_run(arriving):
    scheduler, coming = arriving
    for req in list(scheduler.running):
        scheduler.abort(req)
    req = scheduler.arrive(prompt(coming, 2), tag(coming), answer=1)
    assert scheduler.prefill() == [req]
    assert scheduler.cache.deferrals.passes == 0


def test_mode_prefetch_passes_over_nothing(arriving):
    scheduler, coming = arriving
    scheduler.cache.switch("prefetch")
    req = scheduler.arrive(prompt(coming, 2), tag(coming))
    assert scheduler.prefill() == [req]


def test_count_of_a_call_that_went_away_is_forgotten(arriving):
    scheduler, coming = arriving
    req = scheduler.arrive(prompt(coming, 2), tag(coming))
    scheduler.prefill()
    scheduler.abort(req)
    assert scheduler.cache.deferrals._of == {}


def test_failure_to_decide_passes_over_nobody_and_switches_off(arriving, monkeypatch):
    scheduler, coming = arriving
    scheduler.may_give_up = True
    monkeypatch.setattr(scheduler.cache.deferrals, "allow", lambda *_: 1 // 0)
    req = scheduler.arrive(prompt(coming, 2), tag(coming))
    assert scheduler.prefill() == [req]
    assert scheduler.cache.degraded


def test_queue_is_looked_through_once_a_pass_however_many_calls_are_passed_over(
    arriving, monkeypatch
):
    scheduler, coming = arriving
    for req in list(scheduler.running):
        scheduler.abort(req)
    for tail in range(20):
        scheduler.arrive(prompt(coming, tail), tag(coming), answer=1)
    scheduler.arrive([9000, 1, 2], answer=1)
    core, looked = scheduler.cache.tree_core, []
    is_prefetching = core.is_prefetching
    monkeypatch.setattr(
        core, "is_prefetching", lambda node: looked.append(node) or is_prefetching(node)
    )
    assert len(scheduler.prefill()) == 1
    assert scheduler.cache.deferrals.passes == 20
    assert len(looked) <= 2 * 21
