"""The runs that a drive leaves behind: the server is told that none follows."""

import asyncio
from pathlib import Path

import pytest
from support.drives import SEQUENCE, driven, first, settings
from support.fake_server import FakeServer
from support.recipes import make_recipe

from kvflow.client.drive import drive
from kvflow.client.http import RefusedError
from kvflow.client.records import CallRecord, CallState, RunRecord
from kvflow.client.server import connect


def ended(fake: FakeServer) -> list[str]:
    return [path.split("/")[4] for path in fake.ends]


async def test_drive_ends_its_last_run_for_good(tmp_path: Path) -> None:
    fake = FakeServer(kvflow=True)
    result = await driven(fake, make_recipe(tmp_path, SEQUENCE), runs=3)
    assert fake.ends == [f"/kvflow/runs/app/{result.runs[-1].run}/end?expect_next=false"]


async def test_drive_ends_the_last_run_of_every_lane(tmp_path: Path) -> None:
    fake = FakeServer(kvflow=True)
    result = await driven(fake, make_recipe(tmp_path, SEQUENCE), runs=6, concurrency=2)
    assert len(fake.ends) == 2
    assert set(ended(fake)) < {run.run for run in result.runs}


async def test_drive_ends_a_run_that_failed_before_the_next_begins(tmp_path: Path) -> None:
    fake = FakeServer(kvflow=True, fault=first("executor", 500))
    result = await driven(fake, make_recipe(tmp_path, SEQUENCE), runs=2)
    assert ended(fake) == [run.run for run in result.runs]


async def test_drive_ends_a_run_without_a_final_call_before_the_next_begins(
    tmp_path: Path,
) -> None:
    fake = FakeServer(kvflow=True)
    result = await driven(fake, make_recipe(tmp_path, {"worker": {"fan_out": 2}}), runs=2)
    assert ended(fake) == [run.run for run in result.runs]


@pytest.mark.parametrize("fault", [None, 500], ids=["no final call", "failed"])
async def test_drive_lets_a_server_expect_the_next_run_until_its_last_one(
    tmp_path: Path, fault: int | None
) -> None:
    fake = FakeServer(kvflow=True, fault=lambda seen: fault)
    await driven(fake, make_recipe(tmp_path, {"worker": {"fan_out": 2}}, repeat=True), runs=3)
    assert [path.rpartition("/")[2] for path in fake.ends] == [
        "end",
        "end",
        "end?expect_next=false",
    ]


async def test_drive_asks_a_server_without_kvflow_once(tmp_path: Path) -> None:
    fake = FakeServer(fault=lambda seen: 500)
    await driven(fake, make_recipe(tmp_path, SEQUENCE), runs=4)
    assert len(fake.ends) == 1


class Sent:
    """Notes when the first call of an agent is on its way."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self.event = asyncio.Event()

    def call_changed(self, record: CallRecord) -> None:
        if (record.call.agent, record.state) == (self._agent, CallState.PREFILL):
            self.event.set()

    def run_ended(self, record: RunRecord) -> None: ...


async def test_drive_that_is_interrupted_ends_its_run(tmp_path: Path) -> None:
    fake, sent = FakeServer(kvflow=True, fault=first("executor", "hang")), Sent("executor")
    with fake.running():
        async with connect(fake.url) as server:
            task = asyncio.create_task(
                drive(make_recipe(tmp_path, SEQUENCE), server, settings(), [sent])
            )
            await sent.event.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert len(fake.ends) == 1


async def test_end_of_a_run_writes_names_as_a_url_has_them(tmp_path: Path) -> None:
    fake = FakeServer(kvflow=True)
    with fake.running():
        async with connect(fake.url) as server:
            await server.end_run("a%b c", "r?1#", expect_next=False)
    assert fake.ends == ["/kvflow/runs/a%25b%20c/r%3F1%23/end?expect_next=false"]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_end_of_a_run_that_a_server_refuses_once_is_tried_again_with_the_next(
    status: int,
) -> None:
    fake = FakeServer(kvflow=True, end_statuses=[status])
    with fake.running():
        async with connect(fake.url) as server:
            with pytest.raises(RefusedError):
                await server.end_run("app", "r1", expect_next=False)
            await server.end_run("app", "r2", expect_next=False)
    assert ended(fake) == ["r1", "r2"]


async def test_drive_goes_on_telling_of_its_runs_where_the_server_refuses_one(
    tmp_path: Path,
) -> None:
    fake = FakeServer(kvflow=True, end_statuses=[503])
    result = await driven(fake, make_recipe(tmp_path, {"worker": {"fan_out": 2}}), runs=3)
    assert ended(fake) == [run.run for run in result.runs]
    assert all(run.ok for run in result.runs)
