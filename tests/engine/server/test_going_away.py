"""Calls of a real server that go away, in every state: nothing of them is left."""

import contextlib
import http.client
import json
import os
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from support.processes import wait_until
from support.real_server import RealServer, tag
from support.server_kinds import AT_ONCE, POOL

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

CLIENT = "away"
TIMES = 20
AGENTS, FIXED, TAIL = 12, 96, 16
LONG = 150
"""Tokens of an answer that takes seconds."""
LONG_TAIL = 160
"""Tokens of a prompt with which calls fit in, but not their answers."""
assert AT_ONCE * (FIXED + TAIL + LONG) < POOL < AGENTS * (FIXED + TAIL)
assert AT_ONCE * (FIXED + LONG_TAIL + 10) < POOL < AT_ONCE * (FIXED + LONG_TAIL + LONG)
PATIENCE_S = 60.0


class HeldLink:
    """The emulated link, which can be made to stand still.

    The link reads its speed before each copy; of a pipe it waits for what somebody writes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Copies that begin meanwhile go on when the context ends."""
        self._path.unlink()
        os.mkfifo(self._path)
        try:
            yield
        finally:
            releasing = os.open(self._path, os.O_RDWR)  # whoever waits for a writer has one
            self._path.with_suffix(".new").write_text("")
            self._path.with_suffix(".new").replace(self._path)
            os.close(releasing)

    def wait_for_a_copy(self) -> None:
        """Wait until a copy has begun and stands still."""
        wait_until(self._somebody_reads, "a copy")

    def _somebody_reads(self) -> bool:
        try:
            os.close(os.open(self._path, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True


class OpenCall:
    """A call whose answer nobody has read yet."""

    def __init__(
        self,
        server: RealServer,
        ids: list[int],
        hint: Any = None,
        *,
        stream: bool = True,
    ) -> None:
        self._server, self._rid = server, uuid4().hex
        # Not ignore_eos: SGLang lets no call in then whose answer may find no room.
        sampling = {"min_new_tokens": LONG, "max_new_tokens": LONG, "temperature": 0}
        body = {
            "rid": self._rid,
            "input_ids": ids,
            "sampling_params": sampling if hint is None else sampling | {"custom_params": hint},
            "stream": stream,
        }
        address = server.url.removeprefix("http://")
        self._connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", "/generate", json.dumps(body), headers)

    def hang_up(self) -> None:
        self._connection.close()

    def tell_off(self) -> None:
        self._server.post("/abort_request", {"rid": self._rid})
        self._connection.close()


@pytest.fixture
def scene(plugin_server):
    plugin_server.empty()
    plugin_server.set_mode("full")
    return Scene(plugin_server)


class Scene:
    """Brings calls into a state."""

    def __init__(self, server: RealServer) -> None:
        self.server, self.link = server, HeldLink(server.link)
        self._tails = random.Random("tails")
        self._open_runs: list[str] = []

    def warm(self) -> None:
        """All prefixes on the host, some of them on the device as well."""
        self.server.flush()
        for agent in range(AGENTS):
            self.server.generate(self.prompt(agent), 2, self.hint(agent))
        wait_until(lambda: not self.server.copies_fly(), "backups")

    def end_runs(self) -> None:
        """Nobody is about to speak any more."""
        while self._open_runs:
            self.server.post(f"/kvflow/runs/{CLIENT}/{self._open_runs.pop()}/end?expect_next=false")

    def prompt(self, agent: int, tail: int = TAIL) -> list[int]:
        fixed = random.Random(f"{CLIENT} {agent}").choices(range(256), k=FIXED)
        return [*fixed, *self._tails.choices(range(256), k=tail)]

    def hint(self, agent: int, then: int | None = None) -> dict[str, Any]:
        """A call of a run of its own, after which another agent speaks, or none."""
        run = uuid4().hex
        told = tag(f"a{agent}", client=CLIENT, run=run, fixed_tokens=FIXED, final=then is None)
        if then is None:
            return told
        self._open_runs.append(run)
        return told | {"kvflow_steps": {f"a{then}": 1}}

    def call(
        self, agent: int, *, then: int | None = None, tail: int = TAIL, stream: bool = True
    ) -> OpenCall:
        prompt, hint = self.prompt(agent, tail), self.hint(agent, then)
        return OpenCall(self.server, prompt, hint, stream=stream)

    def absent(self) -> int:
        """An agent whose prefix is on the host alone."""
        return self._agent_with("host_tokens")

    def present(self) -> int:
        """An agent whose prefix is on the device."""
        return self._agent_with("device_tokens")

    def _agent_with(self, place: str) -> int:
        agents = [one for one in self.frame()["agents"] if one["client"] == CLIENT]
        return next(int(one["agent"][1:]) for one in agents if one[place] == FIXED)

    def frame(self) -> Any:
        return self.server.snapshot(nodes=0)

    def deferred_calls(self) -> int:
        """Calls that were ever passed over."""
        return int(self.frame()["counters"]["deferred_calls"])

    def retractions(self) -> int:
        """Times that a running call had to give its slots to others."""
        name = "sglang:num_retracted_requests_total"
        lines = self.server.get("/metrics").splitlines()
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith(name))

    def has_retracted(self, times: int) -> bool:
        return self.retractions() >= times

    def is_idle(self) -> bool:
        frame = self.frame()
        return not (frame["running"] or frame["waiting"] or self.server.copies_fly())

    def waiting(self) -> Iterator[list[OpenCall]]:
        """Behind as many calls as run at once."""
        ahead = [self.call(agent) for agent in range(AT_ONCE)]
        wait_until(lambda: self.frame()["running"] == AT_ONCE, "calls that run")
        calls = [self.call(number % AGENTS) for number in range(TIMES)]
        wait_until(lambda: self.frame()["waiting"] == TIMES, "calls that wait")
        yield calls
        wait_until(lambda: not self.frame()["waiting"], "an empty queue")
        for call in ahead:
            call.tell_off()

    def deferred(self) -> Iterator[list[OpenCall]]:
        """While the prefix that they share is brought back ahead of them, and stands still."""
        agent = self.absent()
        with self.link.held():
            ahead = self.call(self.present(), then=agent)
            self.link.wait_for_a_copy()
            before = self.deferred_calls()
            calls = [self.call(agent) for _ in range(TIMES)]
            wait_until(lambda: self.deferred_calls() >= before + TIMES, "deferrals")
            yield calls
            wait_until(lambda: not self.frame()["waiting"], "an empty queue")
        ahead.tell_off()

    def loading(self) -> Iterator[list[OpenCall]]:
        """While the whole engine waits for the prefix that one of them needs."""
        for _ in range(TIMES):
            agent = self.absent()
            with self.link.held():
                call = self.call(agent, stream=False)
                self.link.wait_for_a_copy()
                yield [call]
            # SGLang needs a second to see that nobody waits for an answer; others go on.
            wait_until(lambda: self.frame()["running"] < AT_ONCE, "the end of a call")

    def running(self) -> Iterator[list[OpenCall]]:
        for _ in range(TIMES // AT_ONCE):
            calls = [self.call(agent) for agent in range(AT_ONCE)]
            wait_until(lambda: self.frame()["running"] == AT_ONCE, "calls that run")
            yield calls
            wait_until(self.is_idle, "the end of the calls")

    def retracted(self) -> Iterator[list[OpenCall]]:
        """Of which one had to give its slots to the others; half of the times for each way."""
        for _ in range(TIMES // 2):
            target = self.retractions() + 1
            calls = [self.call(agent, tail=LONG_TAIL) for agent in range(AT_ONCE)]
            wait_until(partial(self.has_retracted, target), "a retraction")
            yield calls
            wait_until(self.is_idle, "the end of the calls")


def check_nothing_runs(scene: Scene) -> None:
    wait_until(scene.is_idle, "idleness")
    frame = scene.frame()
    assert frame["device"]["locked"] == frame["host"]["locked"] == 0
    assert not any(run["in_flight"] for run in frame["run_states"])
    assert not any(agent["in_flight"] for agent in frame["agents"])
    assert not frame["degraded"]
    assert frame["waiting_calls"] == []


def check_flush_empties_everything(scene: Scene) -> None:
    wait_until(lambda: not scene.server.copies_fly(), "the last copy")
    scene.server.flush()
    empty = scene.frame()
    assert empty["tree_nodes"] == 0
    for tier in ("device", "host"):
        assert empty[tier]["free"] == empty[tier]["capacity"]


def check_prefetch_works(scene: Scene) -> None:
    scene.end_runs()
    before = scene.frame()["counters"]
    agent, first = scene.absent(), scene.present()
    scene.server.generate(scene.prompt(first), 30, scene.hint(first, then=agent))
    found = scene.server.generate(scene.prompt(agent), 2, scene.hint(agent))
    after = scene.frame()["counters"]
    assert found.device >= FIXED
    assert after["prefetched_used_tokens"] - before["prefetched_used_tokens"] == FIXED
    scene.end_runs()


@pytest.mark.parametrize("state", ["waiting", "deferred", "loading", "running", "retracted"])
@pytest.mark.parametrize("go_away", [OpenCall.hang_up, OpenCall.tell_off])
def test_calls_that_go_away_leave_nothing_and_prefetch_works(scene, state, go_away):
    scene.warm()
    gone = 0
    for calls in getattr(scene, state)():
        for call in calls:
            go_away(call)
        gone += len(calls)
    assert gone >= TIMES
    check_nothing_runs(scene)
    check_prefetch_works(scene)
    check_flush_empties_everything(scene)


@pytest.mark.parametrize("paused", [False, True])
def test_flush_is_taken_while_a_prefetch_is_on_its_way(scene, paused):
    scene.warm()
    agent, first = scene.absent(), scene.present()
    prefix_bytes = FIXED * scene.frame()["bytes_per_token"]
    scene.server.set_link(prefix_bytes / 2.0 / 1e9)  # it takes two seconds
    scene.server.generate(scene.prompt(first), 2, scene.hint(first, then=agent))
    wait_until(scene.server.copies_fly, "a prefetch")
    if paused:
        scene.server.post("/pause_generation", {"mode": "in_place"})
    scene.server.post("/flush_cache", {})
    assert scene.frame()["tree_nodes"] == 0
    scene.server.set_link(None)
    if paused:
        scene.server.post("/continue_generation", {})
    scene.warm()
    check_prefetch_works(scene)
