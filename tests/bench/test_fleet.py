"""Servers side by side, with a stand-in for SGLang."""

import os

import pytest
from support.launches import fake_environment, fake_launch, free_port

from kvflow.bench.arms import ARMS
from kvflow.bench.fleet import SideBySide, Station, log_of, running
from kvflow.errors import KvflowError

FAILS = {
    "FAKE_SGLANG": "fail",
    "FAKE_SGLANG_LOG": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "FAKE_SGLANG_EXIT": "1",
}


@pytest.fixture
def environ(tmp_path, monkeypatch):
    found = fake_environment(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", found["XDG_STATE_HOME"])
    return found


def wanted(**behaviours):
    return {arm: fake_launch(free_port(), env=env) for arm, env in behaviours.items()}


def test_running_keeps_the_servers_that_start_beside_one_that_does_not(environ):
    failed = {}
    with running(wanted(lru=FAILS, hicache={}), environ, 60, print, failed) as stations:
        assert list(stations) == ["hicache"]
        assert not stations["hicache"].server.ended
    assert failed["lru"].what == "not enough GPU memory"
    assert stations["hicache"].server.ended


def test_running_without_any_server_says_why_the_first_one_did_not_start(environ):
    with (
        pytest.raises(KvflowError, match="not enough GPU memory"),
        running(wanted(lru=FAILS, hicache=FAILS), environ, 60, print, {}),
    ):
        pass


def test_running_that_nobody_asks_to_go_on_ends_with_the_first_that_does_not_start(environ):
    with (
        pytest.raises(KvflowError, match="not enough GPU memory"),
        running(wanted(lru=FAILS, hicache={}), environ, 60, print),
    ):
        pass


def test_log_of_an_arm_is_another_in_a_bench_beside_this_one(environ, monkeypatch):
    with running(wanted(hicache={}), environ, 60, print) as stations:
        ours = stations["hicache"].server.log
        monkeypatch.setattr(os, "getpid", lambda: 2**22 + 1)
        assert log_of("hicache") != ours
        assert log_of("hicache").name == ours.name == "hicache.log"


async def test_side_by_side_ends_the_server_of_an_arm_that_is_left_out(environ):
    error = KvflowError("it hangs")
    with running(wanted(lru={}, hicache={}), environ, 60, print, failed := {}) as stations:
        fleet = SideBySide(stations, failed)
        fleet.leave_out("lru", error)
        assert (stations["lru"].server.ended, stations["hicache"].server.ended) == (True, False)
        with pytest.raises(KvflowError) as raised:
            await fleet.station(ARMS["lru"])
    assert raised.value is error


async def test_side_by_side_gives_every_arm_its_own_or_the_reason_why_there_is_none():
    error = KvflowError("not enough GPU memory")
    fleet = SideBySide({"lru": Station("http://one")}, {"full": error})
    assert [fleet.server_of(arm) for arm in ARMS.values()] == list(ARMS)
    assert (await fleet.station(ARMS["lru"])).url == "http://one"
    with pytest.raises(KvflowError) as raised:
        await fleet.station(ARMS["full"])
    assert raised.value is error
