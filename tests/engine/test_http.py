import json
import time
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import pytest
from support.control_app import ControlApp
from support.mini_scheduler import MiniScheduler
from support.prefixes import PROMPT, scheduler
from support.tags import by

from kvflow.engine import http_control, http_watch, workflows
from kvflow.engine.http_errors import ControlError

pytestmark = [
    pytest.mark.engine,
    pytest.mark.filterwarnings("ignore:ORJSONResponse is deprecated"),  # SGLang's own
]

RECIPE: dict[str, Any] = {
    "kvflow": 1,
    "name": "work",
    "agents": {"a": {"prompt": "You are a."}, "b": {"prompt": "You are b.", "after": "a"}},
}
ROUTES = [
    ("GET", "/kvflow/snapshot"),
    ("GET", "/kvflow/snapshot?since=0"),
    ("GET", "/kvflow/events"),
    ("GET", "/kvflow/policy"),
    ("PATCH", "/kvflow/policy"),
    ("GET", "/kvflow/workflows"),
    ("POST", "/kvflow/workflows"),
    ("DELETE", "/kvflow/workflows/app/work"),
    ("POST", "/kvflow/runs/app/run/end"),
]


@pytest.fixture
def mini() -> MiniScheduler:
    made = scheduler()
    made.serve(PROMPT, by("a", 30, steps={"a": 2}))
    return made


@pytest.fixture
def app(mini, monkeypatch) -> ControlApp:
    return ControlApp(mini, monkeypatch)


async def error(app: ControlApp, status: int, method: str, path: str, **request: Any) -> Any:
    """What an answer with this status says is wrong."""
    answer = await app.ask(method, path, **request)
    assert answer.status_code == status
    told = answer.json()["error"]
    assert told.keys() == {"message", "what", "why", "hint"}
    assert told["what"]
    return told


# Who may


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("key", ["api_key", "admin_api_key"])
async def test_route_without_the_key_is_refused_where_one_is_set(
    mini, monkeypatch, key, method, path
):
    app = ControlApp(mini, monkeypatch, **{key: "sesame"})
    assert (await app.ask(method, path)).status_code == 401
    wrong = {"Authorization": "Bearer tahini"}
    assert (await app.ask(method, path, headers=wrong)).status_code == 401


@pytest.mark.parametrize("key", ["api_key", "admin_api_key"])
async def test_route_with_the_key_answers(mini, monkeypatch, key):
    app = ControlApp(mini, monkeypatch, **{key: "sesame"})
    answer = await app.ask("GET", "/kvflow/policy", headers={"Authorization": "Bearer sesame"})
    assert answer.json()["mode"] == "evict"


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_server_without_kvflows_cache_has_none_of_the_routes(mini, monkeypatch, method, path):
    app = ControlApp(mini, monkeypatch, backend="other")
    body = {"mode": "off"} if method == "PATCH" else {"client": "app", "recipe": RECIPE}
    if method == "DELETE":
        return  # nothing can be registered there
    answer = await app.ask(method, path, json=None if method == "GET" else body)
    assert answer.status_code == 404
    assert answer.json()["error"]["hint"]


async def test_every_route_is_described_in_the_servers_page(app):
    paths = (await app.ask("GET", "/openapi.json")).json()["paths"]
    shown = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert shown == {
        (method, path.partition("?")[0].replace("/app/work", "/{client}/{name}"))
        if "runs" not in path
        else (method, "/kvflow/runs/{client}/{run}/end")
        for method, path in ROUTES
    }
    assert all(
        told["summary"] and told["description"] for m in paths.values() for told in m.values()
    )


# Frames


async def test_snapshot_is_a_frame(app):
    frame = (await app.ask("GET", "/kvflow/snapshot?nodes=1")).json()
    assert len(frame["nodes"]) == 1
    assert frame["delta_since"] is None


@pytest.mark.parametrize(("nodes", "most"), [(1, 5), (0, 50)])
async def test_snapshots_by_themselves_are_so_many_a_second_and_no_more(app, mini, nodes, most):
    asked = mini.cache.tree_core.watch.number()
    began = time.monotonic()
    while time.monotonic() - began < 0.5:
        await app.ask("GET", f"/kvflow/snapshot?nodes={nodes}")
    allowed = most * (time.monotonic() - began) + 1
    assert 2 <= mini.cache.tree_core.watch.number() - asked - 1 <= allowed


async def test_snapshot_since_a_frame_has_what_changed_after_it(app, mini):
    frame = (await app.ask("GET", "/kvflow/snapshot?since=0")).json()
    nodes: dict[int, Any] = {}
    while True:
        nodes |= {node["id"]: node for node in frame["nodes"]}
        if not frame["nodes_left_out"]:
            break
        frame = (await app.ask("GET", f"/kvflow/snapshot?since={frame['seq']}")).json()
    whole = (await app.ask("GET", "/kvflow/snapshot")).json()
    assert nodes == {node["id"]: node for node in whole["nodes"]}


@pytest.mark.parametrize(
    "query", ["nodes=-1", "nodes=2001", "nodes=x", "since=-1", "since=x", "since=1e9"]
)
async def test_snapshot_of_nonsense_is_refused(app, query):
    told = await error(app, 400, "GET", f"/kvflow/snapshot?{query}")
    assert query.partition("=")[0] in told["why"]


def events(parts: list[bytes]) -> list[dict[str, str]]:
    text = b"".join(parts).decode()
    return [
        dict(line.split(": ", 1) for line in event.splitlines() if not line.startswith(":"))
        for event in text.split("\n\n")
        if event.strip() and not event.startswith(":")
    ]


async def test_events_are_frames_that_follow_one_another(app, mini):
    status, parts = await app.stream("/kvflow/events?interval=0.25", lambda p: len(events(p)) >= 4)
    assert status == 200
    found = [json.loads(event["data"]) for event in events(parts)]
    assert [event["event"] for event in events(parts)] == ["frame"] * len(found)
    assert [event["id"] for event in events(parts)] == [str(frame["seq"]) for frame in found]
    assert found[0]["delta_since"] is None
    for before, after in pairwise(found):
        assert after["delta_since"] == before["seq"]


async def test_events_go_on_after_the_last_one_that_the_client_had(app):
    _, parts = await app.stream("/kvflow/events?interval=0.25", lambda p: len(events(p)) >= 3)
    last = events(parts)[-1]["id"]
    _, parts = await app.stream(
        "/kvflow/events?interval=0.25", lambda p: len(events(p)) >= 1, {"last-event-id": last}
    )
    assert json.loads(events(parts)[0]["data"])["delta_since"] == int(last)


async def test_streams_are_so_many_and_no_more(app, monkeypatch):
    monkeypatch.setattr(http_watch, "MOST_STREAMS", 0)
    told = await error(app, 503, "GET", "/kvflow/events")
    assert told["hint"]


async def test_stream_that_ended_leaves_its_place(app):
    for _ in range(3):
        await app.stream("/kvflow/events", lambda parts: bool(events(parts)))
    assert not http_watch._streams


# Policy and runs


async def test_policy_is_put_to_work(app, mini):
    answer = await app.ask("PATCH", "/kvflow/policy", json={"mode": "off"})
    assert answer.json()["mode"] == mini.cache.mode == "off"


@pytest.mark.parametrize("body", ["", "{", "[]", "{}", '{"mode": 7}', '{"mode": "off", "x": 1}'])
async def test_policy_of_nonsense_is_refused(app, mini, body):
    await error(app, 400, "PATCH", "/kvflow/policy", content=body)
    assert mini.cache.mode == "evict"


async def test_policy_that_a_degraded_server_cannot_follow_is_refused(app, mini):
    mini.cache.give_up()
    told = await error(app, 400, "PATCH", "/kvflow/policy", json={"mode": "full"})
    assert "mode full" in told["what"]
    assert "failed" in told["why"]
    assert "log" in told["hint"]
    assert mini.cache.mode == "off"


async def test_policy_off_is_what_a_degraded_server_has_already(app, mini):
    mini.cache.give_up()
    answer = await app.ask("PATCH", "/kvflow/policy", json={"mode": "off"})
    assert (answer.status_code, answer.json()["mode"]) == (200, "off")


async def test_end_of_a_run_takes_its_steps(app, mini):
    assert mini.cache.calls.table.least("app", "a") == 2
    await app.ask("POST", "/kvflow/runs/app/run/end?expect_next=false")
    assert mini.cache.calls.table.least("app", "a") is None


@pytest.mark.parametrize("name", ["x y", "100%", "a%2Fb", "r?1#2", "é", "a;b:c\\d"])
async def test_end_of_a_run_finds_any_name_that_a_tag_can_have(app, mini, name):
    mini.serve(PROMPT, by("b", 30, client=name, run=name, steps={"b": 2}))
    assert mini.cache.calls.table.least(name, "b") == 2
    path = f"/kvflow/runs/{quote(name, safe='')}/{quote(name, safe='')}/end?expect_next=false"
    assert (await app.ask("POST", path)).status_code == 200
    assert mini.cache.calls.table.least(name, "b") is None


async def test_end_of_a_run_with_a_name_that_none_has_is_refused(app):
    told = await error(app, 400, "POST", "/kvflow/runs/app/%1B/end")
    assert "tag" in told["why"]


# Workflows


async def test_workflow_is_registered_with_the_prefixes_that_the_server_renders(app, mini):
    answer = await app.ask("POST", "/kvflow/workflows", json={"client": "app", "recipe": RECIPE})
    prefix = "<system>You are a.<user>"
    assert answer.json() == {"agents": {"a": len(prefix), "b": len(prefix)}}
    mini.serve([*map(ord, prefix), 1, 2], by("a", run="new"))
    assert mini.cache.calls.table.least("app", "b") == 1


async def test_workflows_are_listed_until_they_are_taken_back(app):
    await app.ask("POST", "/kvflow/workflows", json={"client": "app", "recipe": RECIPE})
    [row] = (await app.ask("GET", "/kvflow/workflows")).json()["workflows"]
    assert (row["client"], row["name"], row["agents"]) == ("app", "work", ["a", "b"])
    assert {"from": "a", "to": "b", "p": None} in row["edges"]
    assert (await app.ask("DELETE", "/kvflow/workflows/app/work")).status_code == 200
    assert (await app.ask("GET", "/kvflow/workflows")).json() == {"workflows": []}
    await error(app, 404, "DELETE", "/kvflow/workflows/app/work")


async def test_workflow_that_a_busy_scheduler_takes_too_late_is_listed(app, monkeypatch):
    async def too_late(op: str, body: object) -> str:
        raise ControlError(504, "the scheduler does not answer")

    with monkeypatch.context() as busy:
        busy.setattr(http_control, "ask", too_late)
        body = {"client": "app", "recipe": RECIPE}
        await error(app, 504, "POST", "/kvflow/workflows", json=body)
    [row] = (await app.ask("GET", "/kvflow/workflows")).json()["workflows"]
    assert (row["client"], row["name"]) == ("app", "work")


@pytest.mark.parametrize("client", ["", "\x1b", "x" * 129, "a/b", ".."])
async def test_workflow_of_a_client_that_no_tag_can_name_is_refused(app, client):
    told = await error(
        app, 400, "POST", "/kvflow/workflows", json={"client": client, "recipe": RECIPE}
    )
    assert "tag" in told["why"]
    assert "no /" in told["hint"]
    assert (await app.ask("GET", "/kvflow/workflows")).json() == {"workflows": []}


@pytest.mark.parametrize("body", ["", "{", "[" * 100_000, "7", '{"client": "a", "recipe": {}}'])
async def test_workflow_of_nonsense_is_refused(app, body):
    told = await error(app, 400, "POST", "/kvflow/workflows", content=body)
    assert told["message"]


async def test_body_that_is_too_large_is_refused(app, monkeypatch):
    monkeypatch.setattr(workflows, "MOST_BYTES", 100)
    await error(app, 413, "POST", "/kvflow/workflows", content=b" " * 101)


async def test_prompts_that_are_too_long_in_all_are_refused_and_not_kept(app, monkeypatch, mini):
    monkeypatch.setattr(workflows, "MOST_TOKENS", 10)
    await error(app, 413, "POST", "/kvflow/workflows", json={"client": "app", "recipe": RECIPE})
    assert (await app.ask("GET", "/kvflow/workflows")).json() == {"workflows": []}
    assert mini.cache.calls.table.graph("app", "work") is None
