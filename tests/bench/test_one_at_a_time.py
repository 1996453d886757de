"""Servers one at a time, with a stand-in for SGLang."""

import asyncio
import json

import pytest
from support.launches import fake_environment, fake_launch, free_port
from support.processes import processes_listed_in, still_running

from kvflow.bench.arms import ARMS
from kvflow.bench.one_at_a_time import taking_turns
from kvflow.errors import KvflowError


class Launcher:
    """Makes launches of the stand-in.

    Attributes:
        env: for the stand-in, by arm.
        started: arms, in the order in which their launches were made.
        told: every narration.
    """

    def __init__(self, folder, **env):
        self.environ, self.env = fake_environment(folder), env
        self.started, self.told = [], []

    def __call__(self, arm):
        self.started.append(arm.name)
        env, mode = dict(self.env.get(arm.name, {})), arm.mode or "off"
        if arm.mode:
            env["KVFLOW_CONFIG"] = json.dumps({"mode": mode})
        return fake_launch(free_port(), env=env, mode=mode)

    def fleet(self):
        return taking_turns(self, self.environ, 60, self.told.append)


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


async def turn(fleet, arm):
    """A turn that goes through: its server is warm for it."""
    station = await fleet.station(ARMS[arm])
    station.holds = ("flow", arm)
    return station


async def test_station_of_another_arm_ends_the_server_before_and_starts_its_own(tmp_path):
    launcher = Launcher(tmp_path)
    with launcher.fleet() as fleet:
        first = await turn(fleet, "lru")
        second = await turn(fleet, "hicache")
        assert (first.server.ended, second.server.ended) == (True, False)
        third = await turn(fleet, "lru")
        assert (second.server.ended, third.holds) == (True, ("flow", "lru"))
    assert launcher.started == ["lru", "hicache", "lru"]
    assert third.server.ended


async def test_station_of_a_new_server_holds_nothing(tmp_path):
    with Launcher(tmp_path).fleet() as fleet:
        await turn(fleet, "lru")
        assert (await fleet.station(ARMS["hicache"])).holds is None


async def test_station_of_all_modes_is_one_server_which_starts_as_the_first_of_them(tmp_path):
    launcher = Launcher(tmp_path)
    with launcher.fleet() as fleet:
        stations = [await turn(fleet, arm) for arm in ("evict", "prefetch", "full")]
        assert stations[0].server.launch.mode == "evict"
    assert stations[0] is stations[1] is stations[2]
    assert launcher.started == ["evict"]
    assert [fleet.server_of(arm) for arm in ARMS.values()] == [
        "lru", "hicache", "limit", *["kvflow"] * 4
    ]  # fmt: skip


async def test_station_whose_turn_has_failed_is_started_anew(tmp_path):
    launcher = Launcher(tmp_path)
    with launcher.fleet() as fleet:
        first = await turn(fleet, "evict")
        first.holds = None
        second = await fleet.station(ARMS["prefetch"])
        assert (first.server.ended, second.server.ended) == (True, False)
    assert launcher.started == ["evict", "prefetch"]


async def test_station_that_cannot_be_started_says_why_is_not_tried_again_and_leaves_the_others(
    tmp_path,
):
    fails = {"FAKE_SGLANG": "fail", "FAKE_SGLANG_EXIT": "1",
             "FAKE_SGLANG_LOG": "CUDA out of memory. Tried to allocate 2.00 GiB."}  # fmt: skip
    launcher = Launcher(tmp_path, hicache=fails)
    with launcher.fleet() as fleet:
        for _ in range(2):
            with pytest.raises(KvflowError, match="not enough GPU memory"):
                await fleet.station(ARMS["hicache"])
        assert not (await turn(fleet, "lru")).server.ended
    assert launcher.started == ["hicache", "lru"]


async def test_station_tells_of_its_start(tmp_path):
    launcher = Launcher(tmp_path)
    with launcher.fleet() as fleet:
        await turn(fleet, "hicache")
    assert launcher.told[0] == "starting hicache: starting SGLang"
    assert launcher.told[-1] == "warming the cache and measuring"


async def test_station_interrupted_while_it_starts_leaves_no_server(tmp_path):
    launcher = Launcher(tmp_path, hicache={"FAKE_SGLANG": "mute"})
    with launcher.fleet() as fleet:
        task = asyncio.create_task(fleet.station(ARMS["hicache"]))
        await asyncio.sleep(0)  # the process is there now
        started = processes_listed_in(tmp_path / "pids")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert still_running(started)
    assert not still_running(started)
