from typing import Any

import msgspec
import pytest
import support.engine  # noqa: F401 - before SGLang
from sglang.srt.mem_cache.base_prefix_cache import EvictParams
from sglang.srt.mem_cache.unified_cache.components import base
from sglang.srt.mem_cache.unified_cache.unified_tree_core import UnifiedTreeNode
from support.mini_scheduler import MiniScheduler
from support.prefixes import PREFIX, PROMPT, evict_all, scheduler
from support.real_cache import nodes, tokens_to
from support.tags import by

from kvflow.engine.snapshot import MOST_NODES, take
from kvflow.engine.snapshot_limits import DEFAULT_NODES
from kvflow.frames import Frame, Node, State, Why

pytestmark = pytest.mark.engine

OTHER = [50] * 30


def node_of(frame: Frame, mini: MiniScheduler, token_ids: list[int]) -> Node:
    """The frame's node that ends with these tokens."""
    ids = {node.id for node in nodes(mini.cache) if tokens_to(node) == token_ids}
    [found] = [node for node in frame.nodes if node.id in ids]
    return found


def busy() -> MiniScheduler:
    """Two agents, one of them evicted to the host; one call runs, one waits."""
    mini = scheduler(tokens=128)
    mini.serve(PROMPT, by("a", 30, steps={"a": 3, "b": 1}))
    mini.cache.evict(EvictParams(num_tokens=mini.cache.evictable_size()))
    mini.serve([*OTHER, 1], by("b", 30, steps={"a": 3, "b": 1}))
    mini.serve([7] * 12)
    mini.arrive([*OTHER, 2], by("b", 30, steps={"a": 2, "b": 4}), answer=9)
    mini.prefill()
    mini.arrive(PROMPT, by("a", 30, steps={"a": 2, "b": 4}))
    return mini


# It changes nothing


def state(cache: Any) -> Any:
    """Everything that a look could disturb."""
    core = cache.tree_core
    return (
        [
            (
                (node.id, len(node.key), node.last_access_time, node.hit_count, node.priority),
                [(data.lock_ref, data.host_lock_ref) for data in node.component_data],
            )
            for node in nodes(cache)
        ],
        [node.id for node in core.device_order.upcoming()],
        [node.id for node in core.host_order.upcoming()],
        dict(core._creators),
        list(cache.calls.table.steps()),
        UnifiedTreeNode.counter,
        base._LAST_ACCESS_TIME_COUNTER_FLOAT,
    )


def test_take_changes_nothing_of_what_it_looks_at():
    mini = busy()
    before = state(mini.cache)
    for _ in range(100):
        take(mini, DEFAULT_NODES)
    assert state(mini.cache) == before
    mini.drain()
    mini.cache.sanity_check()


def test_frame_of_a_busy_server_comes_back_equal_from_json():
    frame = take(busy(), DEFAULT_NODES)
    assert msgspec.json.decode(msgspec.json.encode(frame), type=Frame) == frame


# Nodes


def test_nodes_are_those_of_the_tree_with_parents_first():
    mini = busy()
    frame = take(mini, DEFAULT_NODES)
    assert {node.id for node in frame.nodes} == {node.id for node in nodes(mini.cache)}
    seen = {mini.cache.tree_core.root_node.id}
    for node in frame.nodes:
        assert node.parent in seen
        seen.add(node.id)


def test_nodes_know_what_stands_before_them():
    mini = busy()
    depth = {node.id: len(tokens_to(node)) - len(node.key) for node in nodes(mini.cache)}
    assert {node.id: node.depth for node in take(mini, DEFAULT_NODES).nodes} == depth


def test_nodes_beyond_those_asked_for_are_left_out_and_said_to_be():
    mini = busy()
    count = len(list(nodes(mini.cache)))
    assert len(take(mini, 2).nodes) == 2
    assert take(mini, 2).nodes_left_out
    assert take(mini, 0).nodes == ()
    assert not take(mini, count).nodes_left_out


@pytest.mark.parametrize("most_nodes", [-1, MOST_NODES + 1])
def test_number_of_nodes_out_of_range_is_refused(most_nodes):
    with pytest.raises(ValueError, match=str(most_nodes)):
        take(scheduler(), most_nodes)


def test_node_says_what_its_rank_comes_from():
    mini = busy()
    frame = take(mini, DEFAULT_NODES)
    assert (node_of(frame, mini, PREFIX).why, node_of(frame, mini, PREFIX).steps) == (Why.STEPS, 0)
    spent = node_of(frame, mini, [*OTHER, 1])
    assert spent.why is Why.SPENT
    untagged = node_of(frame, mini, [7] * 12)
    assert (untagged.why, untagged.steps) == (Why.UNTAGGED, 4)


def test_node_in_mode_off_ranks_by_its_last_access():
    mini = busy()
    mini.cache.switch("off")
    assert {node.why for node in take(mini, DEFAULT_NODES).nodes} == {Why.ACCESS}


def test_node_names_the_agents_whose_prefix_ends_there():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    mini.serve(PROMPT, by("b", 30, client="other"))
    frame = take(mini, DEFAULT_NODES)
    assert node_of(frame, mini, PREFIX).agents == ("app/a", "other/b")
    assert [node.agents for node in frame.nodes].count(()) == len(frame.nodes) - 1


def test_frame_looks_at_few_marks_however_many_stand(monkeypatch):
    mini = scheduler(tokens=4096)
    for tenant in range(60):
        mini.serve(PROMPT, by("a", 30, run=f"r{tenant}"), cache_salt=str(tenant))
    ranks, looked = mini.cache.tree_core.ranks, []
    end = ranks.end
    monkeypatch.setattr(ranks, "end", lambda mark: looked.append(mark) or end(mark))
    [agent] = take(mini, 0).agents
    assert agent.prefix_tokens == 30
    assert len(looked) <= 4


def test_node_state_is_where_its_kv_is():
    mini = scheduler()
    mini.arrive(PROMPT, by("a", 30), answer=1)
    mini.prefill()
    frame = take(mini, DEFAULT_NODES)
    assert node_of(frame, mini, PREFIX).state is State.OFFLOADING
    assert node_of(frame, mini, PROMPT).state is State.DEVICE
    mini.acknowledge()
    assert node_of(take(mini, DEFAULT_NODES), mini, PREFIX).state is State.MIRRORED
    evict_all(mini.cache)
    assert node_of(take(mini, DEFAULT_NODES), mini, PREFIX).state is State.HOST
    mini.arrive([*PREFIX, 9])
    mini.prefill()
    assert node_of(take(mini, DEFAULT_NODES), mini, PREFIX).state is State.LOADING
    mini.drain()
    assert node_of(take(mini, DEFAULT_NODES), mini, PREFIX).state is State.MIRRORED


# Agents, pools, counters


def test_agents_show_their_steps_calls_and_where_their_prefix_is():
    mini = busy()
    a, b = take(mini, DEFAULT_NODES).agents
    assert (a.agent, a.steps, a.in_flight) == ("a", 0, 1)
    assert (a.prefix_tokens, a.device_tokens, a.host_tokens) == (30, 0, 30)
    assert (b.agent, b.steps, b.in_flight, b.runs) == ("b", 0, 1, 1)
    assert (b.prefix_tokens, b.device_tokens, b.host_tokens) == (30, 30, 0)


def test_agent_without_a_live_run_is_shown_while_its_prefix_stands():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30, final=True))
    [agent] = take(mini, DEFAULT_NODES).agents
    assert (agent.agent, agent.steps, agent.runs, agent.prefix_tokens) == ("a", None, 0, 30)


def test_pools_add_up():
    mini = busy()
    frame = take(mini, DEFAULT_NODES)
    [running] = mini.running
    held = running.kv.kv_allocated_len - running.kv.cache_protected_len
    device, host = frame.device, frame.host
    assert host is not None
    assert device.capacity == 128 == device.free + device.evictable + device.locked + held
    assert host.capacity == host.free + host.evictable + host.locked
    assert host.capacity - host.free == sum(
        node.tokens for node in frame.nodes if node.state in (State.HOST, State.MIRRORED)
    )


def test_host_tokens_that_are_written_are_locked():
    mini = scheduler()
    mini.arrive(PROMPT, by("a", 30), answer=1)
    mini.prefill()
    host = take(mini, DEFAULT_NODES).host
    assert host is not None
    assert (host.locked, host.evictable) == (30, 0)
    mini.acknowledge()
    host = take(mini, DEFAULT_NODES).host
    assert host is not None
    assert (host.locked, host.evictable) == (0, 30)


def test_host_tokens_that_are_written_are_locked_after_a_split_too():
    mini = scheduler()
    mini.arrive(PROMPT, by("a", 30), answer=1)
    mini.prefill()
    mini.arrive([*PREFIX[:10], 9], answer=1)
    mini.prefill()
    host = take(mini, DEFAULT_NODES).host
    assert host is not None
    assert host.locked == host.capacity - host.free


def test_host_pool_of_a_server_without_one_is_none():
    assert take(scheduler(host_ratio=0), DEFAULT_NODES).host is None


def test_bytes_of_a_token_are_those_of_the_pool():
    layers, keys_and_values, numbers, bytes_each = 2, 2, 2, 4
    expected = layers * keys_and_values * numbers * bytes_each
    assert take(scheduler(page=16), DEFAULT_NODES).bytes_per_token == expected


def test_evictions_and_counters_tell_what_happened():
    mini = busy()
    frame = take(mini, DEFAULT_NODES)
    assert [record.seq for record in frame.evictions] == [1, 2, 3]
    assert [record.outcome for record in frame.evictions] == ["dropped", "dropped", "demoted"]
    counters = frame.counters
    assert counters.evicted_device_tokens == sum(record.tokens for record in frame.evictions)
    assert (counters.tagged_calls, counters.untagged_calls) == (4, 1)
    assert (frame.running, frame.waiting, frame.runs) == (1, 1, 1)
