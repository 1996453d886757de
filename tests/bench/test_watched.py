import json

import jsonschema
import pytest
from support.bench import make_setting, make_trial

from kvflow.bench.session import Measured
from kvflow.bench.trace import Copy, Look, Trace
from kvflow.bench.watched import json_schema, watched_runs
from kvflow.client.records import CallRecord, CallState


@pytest.fixture
def body(tmp_path):
    """Of two arms: one that tells everything, one that tells nothing and failed."""
    setting = make_setting(tmp_path)
    calls = make_trial(setting, "full", 0).calls
    failed = [CallRecord(calls[0].call, "r9", CallState.FAILED, 0.5, None, "HTTP 500")]
    told = Trace(calls, [Look(0.1, True, 2)], [Copy(0.1, 0.3)])
    trials = [
        make_trial(setting, "hicache", 0),
        make_trial(setting, "hicache", 1, trace=Trace(failed)),
        make_trial(setting, "full", 1, trace=told),
    ]
    return json.loads(watched_runs([Measured(setting, trials=trials)]).model_dump_json())


def test_watched_runs_obey_their_schema(body):
    jsonschema.validate(body, json_schema(), cls=jsonschema.Draft202012Validator)
    assert body["schema_version"] == 1


def test_watched_runs_are_of_the_turns_that_were_watched(body):
    assert [(run["setting"], run["arm"]) for run in body["runs"]] == [
        ("flow", "hicache"), ("flow", "full")
    ]  # fmt: skip


def test_watched_run_holds_what_was_told_and_null_for_what_was_not(body):
    stock, full = body["runs"]
    assert (stock["copies"], stock["looks"]) == (None, [])
    assert full["copies"] == [{"start_s": 0.1, "end_s": 0.3}]
    assert full["looks"] == [{"at_s": 0.1, "loads": True, "waits": 2}]


def test_watched_call_holds_times_and_tokens_but_no_text(body):
    [failed] = body["runs"][0]["calls"]
    assert (failed["state"], failed["error"], failed["ttft_s"]) == ("failed", "HTTP 500", None)
    done = body["runs"][1]["calls"][0]
    assert (done["agent"], done["ttft_s"], done["cached_device"]) == ("a", 0.1, 100)
    assert len(done["token_times_s"]) == 4
    assert "noise" not in json.dumps(body)


def test_schema_refuses_what_is_no_timeline(body):
    body["runs"][0]["calls"][0]["prompt"] = "secret"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, json_schema(), cls=jsonschema.Draft202012Validator)
