from typing import Any

import pytest
import support.engine  # noqa: F401 - before SGLang
from sglang.srt.mem_cache.base_prefix_cache import EvictParams
from sglang.srt.mem_cache.pool_host import mha
from support import kv_values
from support.audit import Audit, Recorder, check_slots, check_tree
from support.mini_scheduler import MiniScheduler
from support.prefixes import evict_all, node_at, scheduler, steps_at
from support.real_cache import build, nodes
from support.tags import by
from support.traffic import SIZES, Traffic

from kvflow.engine.cpu.link import Link
from kvflow.frames import Why

pytestmark = pytest.mark.engine

OPERATIONS = 3_400  # by page size: 10,200 in all
COMMON = [9] * 10
A, B = COMMON + [1] * 10, COMMON + [2] * 10  # fixed prefixes of two agents
TAIL = [3, 4, 5]


# Everything at once


def disturb(
    page: int,
    operations: int,
    *,
    policy: str = "write_through",
    seed: int = 1,
    switches: bool = True,
) -> Any:
    """Random traffic against a cache of its own, with everything held true all along."""
    tokens, longest = SIZES[page]
    cache = build(page, tokens=tokens, host_ratio=1.5, policy=policy)
    audit = Audit(cache)  # judges every victim
    mini = MiniScheduler(cache, chunk=longest // 2)  # checks every KV that a call reads
    traffic = Traffic(mini, seed, longest, tagged=0.7, switches=switches)
    for number in range(operations):
        traffic.step()
        check_tree(cache)
        check_slots(mini)
        if number % 25 == 0:
            audit.check_ranks()
            mini.finish_copies()
            kv_values.check_tree(cache)
    mini.drain()
    audit.check_ranks()
    kv_values.check_tree(cache)
    cache.sanity_check()
    check_slots(mini)
    assert cache.protected_size() == 0
    assert {victim.tier for victim in audit.victims} == {"device", "host"}
    assert sum(on_host for _, _, on_host in mini.hits) > 0
    return cache


@pytest.mark.parametrize("page", SIZES)
def test_random_traffic_leaves_tree_slots_ranks_victims_and_kv_right(page):
    disturb(page, OPERATIONS)


def test_random_traffic_in_write_back_leaves_tree_slots_ranks_victims_and_kv_right():
    disturb(1, OPERATIONS // 4, policy="write_back")


def test_random_traffic_over_a_slow_link_reads_only_what_has_arrived(monkeypatch):
    slow = Link(lambda: 0.00003)  # about 30 ms for a prefix of 30 tokens
    monkeypatch.setattr(mha, "transfer_kv_direct", slow.transfer_kv_direct)
    cache = disturb(1, OPERATIONS // 4, seed=3, switches=False)
    assert cache.tree_core.outcomes.late > 0  # read while it was on its way


# Splits


def test_split_inside_a_marked_node_leaves_the_mark_where_its_prefix_ends():
    mini = scheduler()
    mini.serve(A + TAIL, by("a", len(A), steps={"a": 2}))
    mini.serve([*COMMON, 7, 7])
    core = mini.cache.tree_core
    assert core.why(node_at(mini.cache, A)) is Why.STEPS
    assert core.why(node_at(mini.cache, COMMON)) is Why.STEPS
    assert core.why(node_at(mini.cache, [*COMMON, 7, 7])) is Why.UNTAGGED
    assert steps_at(mini.cache, COMMON) == steps_at(mini.cache, A) == 2


def test_split_of_a_spent_node_by_a_match_leaves_only_the_rest_spent():
    mini = scheduler()
    req = mini.serve(A + TAIL, by("a", len(A)))
    whole = list(req.origin_input_ids + req.output_ids)[:-1]
    mini.serve([*whole[:-1], 7])
    core = mini.cache.tree_core
    assert core.why(node_at(mini.cache, whole)) is Why.SPENT
    assert core.why(node_at(mini.cache, whole[:-1])) is Why.UNTAGGED  # the second call found it


def test_split_of_a_node_that_is_loading_leaves_both_halves_loading():
    mini = scheduler()
    mini.serve(A + TAIL, by("a", len(A)))
    evict_all(mini.cache)
    mini.arrive([*A, 7], by("a", len(A)))
    mini.prefill()
    mini.arrive([*COMMON, 8, 8, 8])
    mini.prefill()
    core = mini.cache.tree_core
    assert core.is_loading(node_at(mini.cache, COMMON).id)
    assert core.is_loading(node_at(mini.cache, A).id)
    mini.drain()
    assert not any(core.is_loading(node.id) for node in nodes(mini.cache))


# Shared prefixes


def test_shared_prefix_ranks_as_the_nearest_agent_that_uses_it():
    mini = scheduler()
    mini.serve(A + TAIL, by("a", len(A), steps={"a": 7, "b": 3}))
    mini.serve(B + TAIL, by("b", len(B), steps={"a": 7, "b": 3}))
    assert steps_at(mini.cache, A) == 7
    assert steps_at(mini.cache, B) == steps_at(mini.cache, COMMON) == 3


def test_shared_prefix_outlives_the_parts_that_are_needed_later():
    mini = scheduler()
    mini.serve(A + TAIL, by("a", len(A), steps={"a": 7, "b": 3}))
    mini.serve(B + TAIL, by("b", len(B), steps={"a": 7, "b": 3}))
    ends = evict_all(mini.cache)
    assert ends[-3:] == [A, B, COMMON]


# Leaving the device and the tree


def test_eviction_of_a_node_with_a_host_copy_keeps_it_loadable():
    mini = scheduler()
    mini.serve(A + TAIL, by("a", len(A)))
    evict_all(mini.cache)
    node = node_at(mini.cache, A)
    assert node.evicted
    assert node.backuped
    mini.serve([*A, 7], by("a", len(A)))  # reads and checks the KV that comes back
    assert mini.hits[-1][1:] == (0, len(A))
    assert not node.evicted


def test_eviction_of_a_marked_node_without_a_host_copy_removes_it_and_its_mark():
    mini = scheduler(host_ratio=0)
    mini.serve(A + TAIL, by("a", len(A), steps={"a": 1}))
    evict_all(mini.cache)
    assert list(nodes(mini.cache)) == []
    core = mini.cache.tree_core
    assert core.ranks.end(("app", "a", None, None)) is None
    assert core._creators == {}
    mini.serve(A + TAIL)
    assert core.why(node_at(mini.cache, A + TAIL)) is Why.UNTAGGED


def test_mark_moves_up_to_what_is_left_of_its_prefix():
    mini = scheduler(host_ratio=0)
    mini.serve([*COMMON, 7, 7])
    mini.serve(A + TAIL, by("a", len(A), steps={"a": 6}))
    recorder = Recorder(mini.cache)
    while node_at(mini.cache, A) is not None:
        mini.cache.evict(EvictParams(num_tokens=1))
    assert list(recorder.victims[-1].path) == A
    core = mini.cache.tree_core
    assert core.ranks.end(("app", "a", None, None)) == node_at(mini.cache, COMMON).id
    assert steps_at(mini.cache, COMMON) == 6


# Modes


def test_switch_to_off_puts_leaves_in_order_of_their_last_access():
    mini = scheduler()
    mini.serve(A + TAIL, by("a", len(A), steps={"a": 1, "b": 9}), answer=1)
    mini.serve(B + TAIL, by("b", len(B), steps={"a": 1, "b": 9}), answer=1)
    mini.cache.switch("off")
    ends = evict_all(mini.cache)
    assert ends == [A + TAIL, A, B + TAIL, B, COMMON]
    assert {entry.why for entry in mini.cache.tree_core.ledger.latest} == {Why.ACCESS}


def test_switch_back_to_evict_ranks_by_what_happened_meanwhile():
    mini = scheduler()
    mini.serve(A + TAIL, by("a", len(A), steps={"a": 1, "b": 9}), answer=1)
    mini.serve(B + TAIL, by("b", len(B), steps={"a": 1, "b": 9}), answer=1)
    mini.cache.switch("off")
    mini.serve([5, 5], by("c", steps={"a": 9, "b": 1}), answer=1)
    mini.cache.switch("evict")
    ends = evict_all(mini.cache)
    assert ends.index(A) < ends.index([5, 5]) < ends.index(B)


def test_call_that_was_inserted_in_mode_off_is_not_cut_when_the_mode_is_switched():
    mini = scheduler(mode="off")
    req = mini.arrive(A + TAIL, by("a", len(A)))
    mini.prefill()
    mini.cache.switch("evict")
    mini.drain()
    assert req.finished()
    assert node_at(mini.cache, A) is None
    assert node_at(mini.cache, A + TAIL) is not None
