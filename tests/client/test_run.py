import asyncio
import logging
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from support.fake_app_server import FakeAppServer

from kvflow.client import Run, tag
from kvflow.errors import UsageError
from kvflow.hints import MAX_NAME

LONGEST = "n" * MAX_NAME


@pytest.fixture
def fake() -> Iterator[FakeAppServer]:
    with FakeAppServer().running() as server:
        yield server


def unused_url() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def test_run_tags_calls_with_its_own_names() -> None:
    run = Run(unused_url(), "app", "peer", "r42")
    assert run.tag("planner") == tag("app", "peer", "r42", "planner")
    assert run.tag("planner", 812, final=True) == tag("app", "peer", "r42", "planner", 812, True)


def test_run_without_a_name_draws_one_of_its_own() -> None:
    url = unused_url()
    first, second = Run(url, "app", "peer"), Run(url, "app", "peer")
    assert first.id != second.id
    assert first.tag("planner")["kvflow"]["run"] == first.id


def test_steps_go_with_every_call_from_then_on_until_they_are_taken_back() -> None:
    run = Run(unused_url(), "app", "peer")
    assert "kvflow_steps" not in run.tag("planner")
    run.steps = {"planner": 0, "executor": 1}
    assert run.tag("planner")["kvflow_steps"] == {"planner": 0, "executor": 1}
    run.steps = {"planner": 2, "executor": 0}
    assert run.tag("executor")["kvflow_steps"] == {"planner": 2, "executor": 0}
    run.steps = None
    assert "kvflow_steps" not in run.tag("planner")


def test_steps_that_the_server_would_ignore_are_refused_with_the_call() -> None:
    run = Run(unused_url(), "app", "peer")
    run.steps = {"planner": -1}
    with pytest.raises(UsageError, match="not valid"):
        run.tag("planner")


@pytest.mark.parametrize(
    "names",
    [
        ("", "peer", "r"),
        ("app", "", "r"),
        ("app", "peer", ""),
        ("a" * 200, "peer", "r"),
        ("app", "peer", "a/b"),
        ("app", "peer", ".."),
    ],
)
def test_run_with_a_name_that_is_none_is_refused_at_once(names: tuple[str, str, str]) -> None:
    with pytest.raises(UsageError):
        Run(unused_url(), *names)


def test_run_with_a_url_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="not the URL"):
        Run("ftp://127.0.0.1", "app", "peer")


@pytest.mark.parametrize("shape", ["{url}", "{url}/", "{url}/v1"])
def test_end_of_the_block_ends_the_run(fake: FakeAppServer, shape: str) -> None:
    with Run(shape.format(url=fake.url), "app", "peer", "r42", api_key="k"):
        assert fake.ended == []
    assert fake.ended == ["/kvflow/runs/app/r42/end"]
    assert fake.seen[0].authorization == "Bearer k"


async def test_end_of_the_async_block_ends_the_run(fake: FakeAppServer) -> None:
    async with Run(fake.url, "app", "peer", "r42"):
        assert fake.ended == []
    assert fake.ended == ["/kvflow/runs/app/r42/end"]


async def test_block_that_is_not_async_ends_the_run_where_a_loop_is_running(
    fake: FakeAppServer,
) -> None:
    with Run(fake.url, "app", "peer", "r42"):
        await asyncio.sleep(0)
    assert fake.ended == ["/kvflow/runs/app/r42/end"]


def test_run_that_fails_is_ended_and_fails_as_it_did(fake: FakeAppServer) -> None:
    with pytest.raises(ZeroDivisionError), Run(fake.url, "app", "peer", "r42"):
        _ = 1 / 0
    assert fake.ended == ["/kvflow/runs/app/r42/end"]


@pytest.mark.parametrize(
    ("name", "written"),
    [("a:b", "a%3Ab"), ("x y?z#", "x%20y%3Fz%23"), ("é%", "%C3%A9%25"), (LONGEST, LONGEST)],
)
def test_names_reach_the_server_as_one_part_of_the_path(
    fake: FakeAppServer, name: str, written: str
) -> None:
    with Run(fake.url, name, "peer", name):
        pass
    assert fake.ended == [f"/kvflow/runs/{written}/{written}/end"]


def test_server_without_kvflow_is_fine(caplog: Any) -> None:
    with FakeAppServer(end_status=404).running() as fake, Run(fake.url, "app", "peer"):
        pass
    assert len(fake.ended) == 1
    assert caplog.records == []


@pytest.mark.parametrize("status", [401, 500])
def test_server_that_refuses_the_end_is_a_warning(caplog: Any, status: int) -> None:
    with FakeAppServer(end_status=status).running() as fake, Run(fake.url, "app", "peer", "r42"):
        pass
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "ending run 'r42'" in record.getMessage()
    assert str(status) in record.getMessage()


def test_server_that_is_gone_is_a_warning(caplog: Any) -> None:
    with Run(unused_url(), "app", "peer", "r42"):
        pass
    (record,) = caplog.records
    assert "ending run 'r42'" in record.getMessage()
    assert "Connection refused" in record.getMessage()
