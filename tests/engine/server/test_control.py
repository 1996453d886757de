"""The control plane of a real server: watched, steered, and asked nonsense."""

import json
import random
import urllib.parse
import urllib.request
from typing import Any

import pytest
from support.real_server import RealServer, Refused, tag

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

CLIENT = "control"
FIXED = 64
RECIPE: dict[str, Any] = {
    "kvflow": 1,
    "name": "pair",
    "agents": {"a": {"prompt": "You plan."}, "b": {"prompt": "You check.", "after": "a"}},
    "repeat": True,
}


@pytest.fixture(scope="module")
def server(plugin_server):
    plugin_server.empty()
    plugin_server.set_mode("prefetch")
    return plugin_server


def hint(agent: str, **more: Any) -> dict[str, Any]:
    return tag(agent, client=CLIENT, **more)


def speak(server: RealServer, agent: str, run: str = "r", **more: Any) -> None:
    fixed = random.Random(f"{CLIENT} {agent}").choices(range(256), k=FIXED)
    prompt = [*fixed, *random.choices(range(256), k=4)]
    server.generate(prompt, 2, hint(agent, run=run, fixed_tokens=FIXED, **more))


def agents_of(server: RealServer) -> dict[str, Any]:
    return {one["agent"]: one for one in server.snapshot()["agents"] if one["client"] == CLIENT}


def workflows_of(server: RealServer) -> list[str]:
    listed = server.get("/kvflow/workflows")["workflows"]
    return [row["name"] for row in listed if row["client"] == CLIENT]


def follow(server: RealServer, since: int) -> tuple[dict[int, Any], set[int], int]:
    """Nodes that changed after a frame, those that are gone, and the last frame's number."""
    nodes: dict[int, Any] = {}
    gone: set[int] = set()
    while True:
        frame = server.get(f"/kvflow/snapshot?since={since}")
        nodes |= {node["id"]: node for node in frame["nodes"]}
        gone |= set(frame["gone"])
        since = frame["seq"]
        if not frame["nodes_left_out"]:
            return nodes, gone, since


def test_reader_that_follows_has_the_tree(server):
    for number in range(12):
        speak(server, f"a{number}")
    nodes, _, since = follow(server, 0)
    for number in range(12):
        speak(server, f"b{number}")
    whole = server.snapshot()
    changed, gone = {}, set()
    while whole["tree_nodes"] != len({*nodes, *changed} - gone):  # what is known is 0.25 s old
        news, left, since = follow(server, since)
        changed |= news
        gone |= left
    assert {*nodes, *changed} - gone == {node["id"] for node in whole["nodes"]}
    assert gone


def test_events_are_frames_that_follow_one_another(server):
    seqs = []
    with urllib.request.urlopen(f"{server.url}/kvflow/events?interval=0.25", timeout=30) as reply:
        assert reply.headers["Content-Type"].startswith("text/event-stream")
        for line in reply:
            if line.startswith(b"data: "):
                frame = json.loads(line[len(b"data: ") :])
                assert frame["delta_since"] == (seqs[-1] if seqs else None)
                seqs.append(frame["seq"])
            if len(seqs) == 4:
                break


def test_registered_workflow_is_walked_with_its_prompts_until_it_is_taken_back(server):
    body = {"client": CLIENT, "recipe": RECIPE}
    prefixes = server.post("/kvflow/workflows", body)["agents"]
    assert prefixes.keys() == {"a", "b"}
    chat = {
        "model": "any",
        "messages": [
            {"role": "system", "content": "You plan."},
            {"role": "user", "content": "Something else each time."},
        ],
        "max_tokens": 2,
        "custom_params": hint("a", run="chat", workflow="pair"),
    }
    server.post("/v1/chat/completions", chat)
    agents = agents_of(server)
    assert agents["a"]["prefix_tokens"] == prefixes["a"]
    assert agents["b"]["steps"] == 1
    assert workflows_of(server) == ["pair"]
    server.post(f"/kvflow/workflows/{CLIENT}/pair", method="DELETE")
    assert "b" not in agents_of(server)
    assert workflows_of(server) == []


def test_run_that_is_ended_is_expected_no_more(server):
    server.post("/kvflow/workflows", {"client": CLIENT, "recipe": RECIPE})
    speak(server, "a", run="ended", workflow="pair")
    assert any(run["run"] == "ended" for run in server.snapshot()["run_states"])
    server.post(f"/kvflow/runs/{CLIENT}/ended/end?expect_next=false")
    assert not any(run["run"] == "ended" for run in server.snapshot()["run_states"])
    server.post(f"/kvflow/workflows/{CLIENT}/pair", method="DELETE")


def test_metrics_show_kvflows_series_beside_sglangs_and_no_names_of_clients(server):
    speak(server, "a0")
    text = server.get("/metrics")
    assert "\nkvflow_tagged_calls_total " in text
    assert "\nsglang:" in text
    assert 'agent="a0"' not in text


NONSENSE: list[Any] = [None, True, -1, 2.5, 10**30, "", "x" * 1000, "\x00", "\ud800", [], [[1]], {}]


def nonsense(chance: random.Random) -> Any:
    """Any JSON value, or something nearly right."""
    keys = [
        "client",
        "recipe",
        "mode",
        "kvflow",
        "workflow",
        "run",
        "agent",
        "name",
        "fixed_tokens",
    ]
    if chance.random() < 0.4:
        return chance.choice(NONSENSE)
    return {chance.choice(keys): chance.choice([*NONSENSE, RECIPE, "app"]) for _ in range(3)}


def test_server_answers_nonsense_without_an_error_of_its_own(server):
    chance = random.Random(5)
    paths = [
        ("POST", "/kvflow/workflows"),
        ("PATCH", "/kvflow/policy"),
        ("POST", "/kvflow/runs/{}/{}/end"),
        ("DELETE", "/kvflow/workflows/{}/{}"),
        ("GET", "/kvflow/snapshot?since={}&nodes={}"),
    ]
    codes = set()
    for number in range(500):
        if number % 5 == 0:
            params = {"kvflow": nonsense(chance), "kvflow_steps": nonsense(chance)}
            body = {
                "input_ids": [1, 2, 3],
                "sampling_params": {"max_new_tokens": 1, "custom_params": params},
            }
            method, path = "POST", "/generate"
        else:
            method, path = chance.choice(paths)
            words = [
                urllib.parse.quote(
                    str(chance.choice(NONSENSE))[:300].encode("utf-8", "replace"), safe=""
                )
                for _ in "ab"
            ]
            path, body = path.format(*words), nonsense(chance)
        try:
            server.post(path, None if method == "GET" else body, method=method)
        except Refused as error:
            codes.add(error.code)
    assert codes <= {400, 404, 405, 413}
    frame = server.snapshot()
    assert (frame["running"], frame["waiting"], frame["degraded"]) == (0, 0, False)
    assert server.get("/health_generate") == ""
