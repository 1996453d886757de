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
from kvflow.engine.metrics_sample import LabelHits, Sample
from kvflow.frames import Frame
from kvflow.hints import NAME_RULES
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


def test_policy_tells_the_mode_at_work_and_that_of_the_start(mini):
    mini.cache.switch("off")
    told = {"mode": "off", "configured": "evict", "limits": [], "untagged_steps": 4}
    assert ask(mini, "policy") == {**told, "degraded": None}


def test_policy_tells_why_a_server_that_gave_up_stays_off(mini):
    mini.cache.give_up()
    told = ask(mini, "policy")
    assert told["mode"] == "off"
    assert "something of kvflow's failed" in told["degraded"]


def test_policy_and_frames_tell_what_keeps_it_from_prefetching(mini):
    mini.cache.limits = ("speculative decoding",)
    assert ask(mini, "policy")["limits"] == ["speculative decoding"]
    assert ask(mini, "snapshot", {"most_nodes": 0})["limits"] == ["speculative decoding"]


def test_answer_names_the_process_that_frames_name(mini):
    told = control.handle(mini, KvflowReq(op="snapshot", body='{"most_nodes": 0}'))
    assert told.replica == json.loads(told.body)["boot"] != ""


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


def refused(mini: Any, op: str, body: Any) -> KvflowReqOutput:
    """The answer of a control message, which must be an error."""
    output = control.handle(mini, KvflowReq(op=op, body=json.dumps(body)))
    assert output.error
    return output


def test_snapshot_follows_from_one_frame_to_the_next(mini):
    mini.serve(PROMPT, by("a", 30))
    first = ask(mini, "follow", {"since": 0})
    assert ask(mini, "follow", {"since": first["seq"]})["delta_since"] == first["seq"]


@pytest.mark.parametrize("op", ["snapshot", "follow", "tick"])
def test_rank_that_does_not_answer_builds_nothing(mini, op):
    mini.ipc_channels.send_to_tokenizer.socket = None
    assert ask(mini, op, {"since": 0, "most_nodes": 10}) == {}
    assert not mini.cache.tree_core.watch.on


def test_tick_answers_with_what_metrics_show(mini):
    mini.serve(PROMPT, by("a", 30))
    sample = msgspec.convert(ask(mini, "tick"), Sample)
    assert sample.counters.tagged_calls == 1
    assert sample.hits == (LabelHits("other", "other", 1, 0, 0, len(PROMPT)),)


# Runs


def test_end_of_a_run_leaves_what_a_repeat_expects(mini):
    ask(mini, "serve", {"recipe": RECIPE | {"repeat": True}, "prefixes": {}})
    mini.serve(PROMPT, by("a", 30))
    ask(mini, "end", {"client": "app", "run": "run", "expect_next": True})
    assert mini.cache.calls.table.least("app", "a") == 1


def test_end_of_the_last_run_leaves_nothing(mini):
    ask(mini, "serve", {"recipe": RECIPE | {"repeat": True}, "prefixes": {}})
    mini.serve(PROMPT, by("a", 30))
    ask(mini, "end", {"client": "app", "run": "run", "expect_next": False})
    assert list(mini.cache.calls.table.steps()) == []
    assert mini.cache.calls.table.live_runs == 0


def test_end_of_an_unknown_run_does_nothing(mini):
    mini.serve(PROMPT, by("a", 30, steps={"a": 2}))
    before = list(mini.cache.calls.table.steps())
    ask(mini, "end", {"client": "app", "run": "another", "expect_next": False})
    ask(mini, "end", {"client": "another", "run": "run", "expect_next": False})
    assert list(mini.cache.calls.table.steps()) == before


@pytest.mark.parametrize("name", ["", "x" * 129, "\x1b[31m", "a/b", "..", 7, None])
def test_name_that_no_tag_can_have_is_refused(mini, name):
    for op, body in (
        ("end", {"client": name, "run": "run", "expect_next": True}),
        ("end", {"client": "app", "run": name, "expect_next": True}),
        ("forget", {"client": "app", "name": name}),
    ):
        output = refused(mini, op, body)
        assert output.why == "it is no name that a tag can have"
        assert output.hint == NAME_RULES


# Workflows of clients


def test_workflow_of_a_client_is_walked_by_its_runs_alone(mini):
    body = {"client": "app", "recipe": RECIPE, "prefixes": {"a": PREFIX}}
    assert ask(mini, "serve", body) == {"agents": {"a": len(PREFIX)}}
    mini.serve(PROMPT, by("a"))
    mini.serve(PROMPT, by("a", client="other"))
    table = mini.cache.calls.table
    assert table.least("app", "b") == 1
    assert table.least("other", "b") is None
    assert mark_end(mini.cache) == len(PREFIX)
    assert mark_end(mini.cache, client="other") == 0


def test_workflow_that_is_registered_again_forgets_the_prompts_before(mini):
    ask(mini, "serve", {"client": "app", "recipe": RECIPE, "prefixes": {"a": PREFIX}})
    ask(mini, "serve", {"client": "app", "recipe": RECIPE, "prefixes": {}})
    mini.serve(PROMPT, by("a"))
    assert mark_end(mini.cache) == 0


def test_workflow_that_is_taken_back_leaves_no_run_and_no_prompt(mini):
    ask(mini, "serve", {"client": "app", "recipe": RECIPE, "prefixes": {"a": PREFIX}})
    mini.serve(PROMPT, by("a"))
    ask(mini, "forget", {"client": "app", "name": "work"})
    table = mini.cache.calls.table
    assert (table.live_runs, list(table.steps())) == (0, [])
    mini.serve(PROMPT, by("a"))
    assert table.least("app", "b") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
)
KEYS = st.sampled_from(
    ["mode", "recipe", "prefixes", "most_nodes", "since", "client", "name", "run", "expect_next"]
)
BODIES = st.text(max_size=30) | (JSON | st.dictionaries(KEYS, JSON)).map(json.dumps)
OPS = st.sampled_from(list(control._OPERATIONS)) | st.text(max_size=8)


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
