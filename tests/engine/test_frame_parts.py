"""What frames say of agents, calls, runs and copies, on a real cache."""

import pytest
import support.engine  # noqa: F401 - before SGLang
from sglang.srt.mem_cache.unified_cache.components import base
from sglang.srt.mem_cache.unified_cache.unified_tree_core import UnifiedTreeNode
from support.mini_scheduler import MiniScheduler
from support.prefixes import PREFIX, PROMPT, evict_all, scheduler
from support.real_cache import nodes
from support.tags import by

from kvflow.engine.frame_parts import model
from kvflow.engine.snapshot import follow, take
from kvflow.engine.snapshot_limits import MOST_AGENTS, MOST_RUNS, MOST_WAITING
from kvflow.frames import AgentState, EvictionRecord, Frame

pytestmark = pytest.mark.engine

OTHER = [50] * 30


def agent_of(frame: Frame, name: str) -> AgentState:
    [found] = [one for one in frame.agents if one.agent == name]
    return found


# The server


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct"),
        ("/home/somebody/models/tiny/", "tiny"),
        ("tiny", "tiny"),
        ("s3://key:secret@bucket/tiny?token=secret/x", "tiny"),
        ("", ""),
    ],
)
def test_model_is_called_by_the_last_part_of_its_path(path, name):
    assert model(path) == name


def test_frame_says_which_model_is_served_and_for_how_long():
    mini = scheduler()
    first, second = take(mini, 0), take(mini, 0)
    assert first.model == "tiny"
    assert 0 < first.uptime_s < second.uptime_s


# Hits


def test_hits_are_counted_by_tier_in_all_and_by_agent():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))  # 35 computed
    mini.serve([*PREFIX, 7, 7], by("a", 30))  # 30 on the device, 2 computed
    evict_all(mini.cache)
    mini.serve([*PREFIX, 8, 8, 8], by("a", 30))  # 30 on the host, 3 computed
    mini.serve([9, 9])  # 2 computed, by nobody
    frame = take(mini, 0)
    one = agent_of(frame, "a")
    assert (one.calls, one.hit_device_tokens, one.hit_host_tokens, one.computed_tokens) == (
        3,
        30,
        30,
        35 + 2 + 3,
    )
    counters = frame.counters
    assert (counters.hit_device_tokens, counters.hit_host_tokens) == (30, 30)
    assert counters.computed_tokens == 35 + 2 + 3 + 2


def test_hits_are_what_the_requests_themselves_found():
    mini = scheduler()
    for number in range(12):
        mini.serve([*PREFIX[: 10 + number], 300 + number], by("a", 10))
        if number % 3 == 0:
            evict_all(mini.cache)
    counters = take(mini, 0).counters
    assert counters.hit_device_tokens == sum(device for _, device, _ in mini.hits)
    assert counters.hit_host_tokens == sum(host for _, _, host in mini.hits)
    assert counters.hit_host_tokens > 0


def test_call_that_is_chunked_or_retracted_counts_once():
    mini = scheduler(chunk=16)
    req = mini.arrive(PROMPT, by("a", 30), answer=6)
    while req not in mini.running:
        mini.prefill()
    mini.retract(req)
    mini.drain()
    one = agent_of(take(mini, 0), "a")
    assert (one.calls, one.computed_tokens, one.hit_device_tokens) == (1, 35, 0)


def test_agent_shows_the_node_that_ends_its_prefix():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    frame = take(mini, 100)
    [node] = [node for node in frame.nodes if node.id == agent_of(frame, "a").end]
    assert (node.depth + node.tokens, node.agents) == (30, ("app/a",))


def test_agents_are_so_many_at_most_those_of_live_runs_first():
    mini = scheduler(tokens=2048)
    for number in range(20):
        mini.serve([number, number, number], by(f"old{number}", 2, final=True))
    steps = {f"live{number}": 3 for number in range(MOST_AGENTS - 10)}
    mini.serve(PROMPT, by("live0", 30, steps=steps))
    agents = take(mini, 0).agents
    assert len(agents) == MOST_AGENTS
    assert sum(one.agent.startswith("live") for one in agents) == len(steps)


# Evictions


def evictions_of(mini: MiniScheduler, tokens: int) -> list[EvictionRecord]:
    return [record for record in take(mini, 0).evictions if record.tokens == tokens]


def test_eviction_is_regretted_when_a_call_asks_for_what_went():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    evict_all(mini.cache)
    [before] = evictions_of(mini, 30)
    assert (before.regret, before.outcome) == (False, "demoted")
    mini.serve([*PREFIX, 8, 8], by("b", 30))
    [after] = evictions_of(mini, 30)
    assert after.regret
    assert take(mini, 0).counters.regretted_tokens == 30


def test_eviction_is_not_regretted_by_another_prompt_or_namespace():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    evict_all(mini.cache)
    mini.serve([*PREFIX[:29], 8, 8])
    mini.serve(PROMPT, extra_key="lora")
    assert not any(record.regret for record in evictions_of(mini, 30))


def test_eviction_from_the_host_is_regretted_when_it_has_to_be_computed_again():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    evict_all(mini.cache)
    mini.cache.evict_host(1000)
    mini.serve([*PREFIX, 8, 8])
    assert {record.tier: record.regret for record in evictions_of(mini, 30)} == {
        "device": True,
        "host": True,
    }


def test_eviction_has_an_age():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    evict_all(mini.cache)
    for record in take(mini, 0).evictions:
        assert record.age_s is not None
        assert record.age_s >= 0


# Calls and runs


def test_waiting_calls_are_shown_in_queue_order():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    mini.arrive(PROMPT, by("a", 30, run="r1"))
    mini.arrive([1, 2, 3])
    first, second = take(mini, 0).waiting_calls
    assert (first.agent, first.run, first.prompt_tokens) == ("app/a", "r1", 35)
    assert (second.agent, second.run, second.prompt_tokens) == ("", "", 3)


def test_waiting_calls_and_runs_are_so_many_at_most():
    mini = scheduler(tokens=4096)
    for number in range(MOST_RUNS + 5):
        mini.arrive([number], by("a", run=f"r{number}", steps={"a": 1}), answer=1)
    frame = take(mini, 0)
    assert (len(frame.waiting_calls), frame.waiting) == (MOST_WAITING, MOST_RUNS + 5)
    assert (len(frame.run_states), frame.runs) == (MOST_RUNS, MOST_RUNS + 5)


def test_run_shows_its_calls_and_steps():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30, steps={"a": 2, "b": 1}))
    mini.cache.tick()
    [run] = take(mini, 0).run_states
    assert (run.client, run.workflow, run.run) == ("app", "work", "run")
    assert (run.in_flight, run.steps, run.idle_ticks) == ({}, {"a": 2, "b": 1}, 1)


# Copies


def test_traffic_counts_bytes_both_ways_and_what_waited():
    mini = scheduler()
    mini.serve(PROMPT, by("a", 30))
    evict_all(mini.cache)
    mini.serve([*PREFIX, 8, 8], by("a", 30))
    frame = take(mini, 0)
    traffic = frame.traffic
    assert traffic is not None
    assert traffic.d2h_bytes == 30 * frame.bytes_per_token
    assert traffic.h2d_bytes == traffic.demand_bytes == 30 * frame.bytes_per_token
    assert (traffic.h2d_operations, traffic.d2h_operations, traffic.waits) == (1, 1, 1)
    assert (traffic.h2d_pending_bytes, traffic.d2h_pending_bytes) == (0, 0)


def test_traffic_shows_what_is_on_its_way():
    mini = scheduler()
    mini.arrive(PROMPT, by("a", 30), answer=1)
    mini.prefill()
    frame = take(mini, 0)
    assert frame.traffic is not None
    assert frame.traffic.d2h_pending_bytes == 30 * frame.bytes_per_token


def test_traffic_without_a_host_tier_is_none():
    assert take(scheduler(host_ratio=0), 0).traffic is None


def test_prefetch_is_no_demand_and_is_recorded_to_its_end():
    mini = scheduler(mode="prefetch")
    mini.serve(PROMPT, by("a", 30, steps={"a": 3}))
    evict_all(mini.cache)
    mini.serve([*OTHER, 1], by("b", 30, steps={"a": 1, "b": 2}))
    mini.acknowledge()
    frame = take(mini, 0)
    [prefetch] = frame.prefetches
    assert (prefetch.agent, prefetch.steps, prefetch.tokens) == ("app/a", 1, 30)
    assert prefetch.status == "arrived"
    assert frame.traffic is not None
    assert (frame.traffic.h2d_bytes, frame.traffic.demand_bytes) == (30 * frame.bytes_per_token, 0)
    mini.serve([*PREFIX, 8], by("a", 30, steps={"a": 2, "b": 1}))
    assert [one.status for one in take(mini, 0).prefetches] == ["used"]


# The frame itself


def test_frames_are_numbered_and_of_one_start():
    mini = scheduler()
    first, second = take(mini, 0), take(mini, 0)
    assert second.seq == first.seq + 1
    assert first.boot == second.boot != ""
    assert second.time_s >= first.time_s > 1e9


def test_thousand_looks_change_neither_order_nor_hits_nor_what_is_matched_next():
    twins = [scheduler(tokens=128), scheduler(tokens=128)]
    for number, mini in enumerate(twins):
        UnifiedTreeNode.counter = 1000
        base._LAST_ACCESS_TIME_COUNTER_FLOAT = base._LAST_ACCESS_TIME_COUNTER_FLOAT * 0 + 1000
        for call in range(12):
            mini.serve([*PREFIX[: 10 + call], call], by("a", 10, steps={"a": 1 + call % 3}))
            if number == 1 and call % 4 == 3:
                seq = 0
                for _ in range(170):
                    take(mini, 500)
                    seq = follow(mini, seq).seq
    seen = [
        (
            [(node.hit_count, node.last_access_time, len(node.key)) for node in nodes(mini.cache)],
            [len(node.key) for node in mini.cache.tree_core.device_order.upcoming()],
            [len(node.key) for node in mini.cache.tree_core.host_order.upcoming()],
            [(device, host) for _, device, host in mini.hits],
        )
        for mini in twins
    ]
    assert seen[0] == seen[1]
