import json
from types import SimpleNamespace
from typing import Any, get_args

import msgspec
import pytest
import support.engine  # noqa: F401 - before SGLang
from hypothesis import given, settings
from hypothesis import strategies as st
from support.mini_scheduler import MiniScheduler
from support.prefixes import PREFIX, PROMPT, mark_end, scheduler
from support.tags import by

from kvflow.engine import control
from kvflow.engine.ipc import KvflowReq, KvflowReqOutput
from kvflow.frames import Frame
from kvflow.recipe.model import Mode

pytestmark = pytest.mark.engine

RECIPE = {
    "kvflow": 1,
    "name": "work",
    "agents": {"a": {"prompt": "You are a."}, "b": {"prompt": "You are b.", "after": "a"}},
}


def ask(mini: Any, op: str, body: Any = None) -> Any:
    """The answer of a control message, which must not be an error."""
    output = control.handle(mini, KvflowReq(op=op, body=json.dumps(body or {})))
    assert output.error == ""
    return json.loads(output.body)


@pytest.fixture
def mini() -> MiniScheduler:
    return scheduler()


def test_policy_tells_the_mode_at_work(mini):
    assert ask(mini, "policy") == {"mode": "evict", "untagged_steps": 4}


@pytest.mark.parametrize("mode", get_args(Mode))
def test_policy_puts_another_mode_to_work(mini, mode):
    assert ask(mini, "policy", {"mode": mode})["mode"] == mode
    assert mini.cache.mode == mode


def test_policy_of_an_unknown_mode_is_an_error_and_changes_nothing(mini):
    output = control.handle(mini, KvflowReq(op="policy", body='{"mode": "fast"}'))
    assert "no mode 'fast'" in output.error
    assert mini.cache.mode == "evict"


def test_serve_registers_graph_and_prefixes(mini):
    answer = ask(mini, "serve", {"recipe": RECIPE, "prefixes": {"a": PREFIX}})
    assert answer == {"agents": {"a": len(PREFIX)}}
    mini.serve(PROMPT, by("a"))
    assert mark_end(mini.cache) == len(PREFIX)
    assert mini.cache.calls.table.least("app", "b") == 1


@pytest.mark.parametrize(
    "body",
    [
        {"recipe": {"kvflow": 1}, "prefixes": {}},
        {"recipe": RECIPE},
        {"recipe": RECIPE, "prefixes": {"a": ["x"]}},
        {"recipe": RECIPE, "prefixes": {"a": 3}},
        {"recipe": RECIPE, "prefixes": []},
    ],
)
def test_serve_of_what_is_no_recipe_is_an_error_and_changes_nothing(mini, body):
    output = control.handle(mini, KvflowReq(op="serve", body=json.dumps(body)))
    assert output.error
    mini.serve(PROMPT, by("a"))
    assert mini.cache.calls.table.least("app", "b") is None


def test_snapshot_is_a_frame(mini):
    mini.serve(PROMPT, by("a", 30))
    output = control.handle(mini, KvflowReq(op="snapshot", body='{"most_nodes": 1}'))
    frame = msgspec.json.decode(output.body, type=Frame)
    assert len(frame.nodes) == 1
    assert frame.nodes_left_out


@pytest.mark.parametrize("most_nodes", [-1, 2001])
def test_snapshot_of_too_many_nodes_is_an_error(mini, most_nodes):
    body = json.dumps({"most_nodes": most_nodes})
    output = control.handle(mini, KvflowReq(op="snapshot", body=body))
    assert "most_nodes" in output.error or "nodes=" in output.error


def test_tick_lets_time_pass_for_runs(mini):
    mini.serve(PROMPT, by("a", 30, steps={"a": 1}))
    for _ in range(mini.cache.calls.table.limits.silent_ticks):
        ask(mini, "tick")
    assert mini.cache.calls.table.counters.expired == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
)
KEYS = st.sampled_from(["mode", "recipe", "prefixes", "most_nodes"])
BODIES = st.text(max_size=30) | (JSON | st.dictionaries(KEYS, JSON)).map(json.dumps)
OPS = st.sampled_from(["policy", "serve", "snapshot", "tick"]) | st.text(max_size=8)


@pytest.fixture(scope="module")
def lasting() -> MiniScheduler:
    return scheduler()


@settings(deadline=None)
@given(op=OPS, body=BODIES)
def test_message_of_any_kind_is_answered(lasting, op, body):
    output = control.handle(lasting, KvflowReq(op=op, body=body))
    assert isinstance(output, KvflowReqOutput)
    assert output.error or json.loads(output.body) is not None


def test_message_that_breaks_the_handler_is_answered_with_its_error(caplog):
    output = control.handle(SimpleNamespace(tree_cache=None), KvflowReq(op="tick"))
    assert output.error == "AssertionError while handling tick"
    assert "tick failed" in caplog.text


def test_message_nested_too_deeply_is_answered_with_its_error(mini):
    output = control.handle(mini, KvflowReq(op="policy", body="[" * 100_000))
    assert output.error
