import json

import pytest
from support.prefixes import scheduler
from support.real_cache import nodes
from support.tags import by

from kvflow.engine import cache as module
from kvflow.engine import control
from kvflow.engine.ipc import KvflowReq

pytestmark = pytest.mark.engine


def test_memory_after_many_calls_is_bounded_by_what_lives():
    mini = scheduler(tokens=64, host_ratio=1.0)
    for number in range(2_000):
        agent = f"agent{number % 5}"
        prefix = [number % 5] * 8
        tail = [1_000 + number, 2_000 + number]
        mini.serve(prefix + tail, by(agent, 8, run=f"run{number}", final=True), answer=1)
    cache, core = mini.cache, mini.cache.tree_core
    live = {node.id for node in nodes(cache)}
    assert len(live) < 64
    assert list(cache.calls.in_flight()) == []
    assert list(cache.calls.table.runs()) == []
    assert core._creators.keys() <= live
    assert core.ranks._spent <= live
    assert core.ranks._through.keys() <= live
    assert len(cache.marks) == len(core.ranks._ends) == 5
    assert core._loading == {}
    assert len(core.device_order) <= len(live)
    assert len(core.ledger.latest) <= 512


def test_memory_of_marks_of_ever_new_agents_is_bounded():
    mini = scheduler(tokens=64, host_ratio=0)
    for number in range(400):
        prompt = [number] * 8 + [1]
        mini.serve(prompt, by(f"agent{number}", 8, run=f"run{number}", final=True), answer=1)
    assert len(mini.cache.tree_core.ranks._ends) <= 8
    assert len(mini.cache.marks) <= 64 + 2 * 8


def test_marks_of_ever_new_clients_on_one_prompt_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST_MARKS", 100)
    mini = scheduler(tokens=64, host_ratio=0)
    for number in range(300):
        tag = by("planner", 8, run="r", client=f"app-{number}", final=True)
        mini.serve([7] * 8 + [number], tag, answer=1)
    assert len(mini.cache.marks) == len(mini.cache.tree_core.ranks._ends) == 100
    frame = control.handle(mini, KvflowReq(op="snapshot", body='{"most_nodes": 9}'))
    assert max(len(node["agents"]) for node in json.loads(frame.body)["nodes"]) == 64


def test_mark_of_an_agent_that_is_expected_is_crowded_out_by_none(monkeypatch):
    monkeypatch.setattr(module, "MOST_MARKS", 20)
    mini = scheduler(tokens=64, host_ratio=0)
    mini.serve([7] * 8 + [0], by("planner", 8, steps={"planner": 3}), answer=1)
    for number in range(60):
        tag = by("planner", 8, run="r", client=f"app-{number}", final=True)
        mini.serve([7] * 8 + [number], tag, answer=1)
    assert mini.cache.tree_core.ranks.end(("app", "planner", None, None)) is not None
    assert len(mini.cache.marks) == 20
