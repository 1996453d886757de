"""Tags and control messages of every kind, 100,000 of them: no crash, and nothing grows.

Seeded, not drawn by hypothesis: it has to be many, and the same machine state all along. What
hypothesis can shrink is in test_control.py and tests/test_hints.py.
"""

import json
import random
from typing import Any

import pytest
import support.engine  # noqa: F401 - before SGLang
from support.prefixes import scheduler

from kvflow.engine import control
from kvflow.engine.calls import Calls
from kvflow.engine.hits import MOST_OWNERS
from kvflow.engine.ipc import KvflowReq
from kvflow.hints import STEPS_KEY, TAG_KEY

pytestmark = pytest.mark.engine

TAGS, MESSAGES = 80_000, 20_000
RECIPE = {
    "kvflow": 1,
    "name": "work",
    "agents": {"a": {"prompt": "x"}, "b": {"fixed_tokens": 3, "after": "a"}},
    "repeat": True,
}


class Fuzz:
    """Draws JSON values, most of them nearly right."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def scalar(self) -> Any:
        chance = self.chance
        return chance.choice(
            [
                None,
                True,
                False,
                0,
                -1,
                chance.randrange(1 << 70),
                1e308,
                float("nan"),
                "",
                "\x00",
                "\ud800",
                "é" * chance.randrange(200),
                "x" * 100_000 if chance.random() < 0.01 else "x",
            ]
        )

    def value(self, depth: int = 3) -> Any:
        kind = self.chance.random()
        if depth == 0 or kind < 0.6:
            return self.scalar()
        size = self.chance.randrange(4)
        if kind < 0.8:
            return [self.value(depth - 1) for _ in range(size)]
        return {str(self.scalar())[:50]: self.value(depth - 1) for _ in range(size)}

    def name(self) -> Any:
        """Mostly one of a few hundred names, as of a client that makes up new ones."""
        if self.chance.random() < 0.05:
            return self.scalar()
        return f"n{self.chance.randrange(self.chance.choice((3, 3000)))}"

    def tag(self) -> Any:
        if self.chance.random() < 0.1:
            return self.value()
        tag = {key: self.name() for key in ("client", "workflow", "run", "agent")}
        if self.chance.random() < 0.3:
            tag["fixed_tokens"] = self.chance.choice([0, 3, 10**9, self.scalar()])
        if self.chance.random() < 0.3:
            tag["final"] = self.chance.choice([True, False, self.scalar()])
        if self.chance.random() < 0.05:
            tag[str(self.scalar())[:20]] = self.value()
        params = {TAG_KEY: tag}
        if self.chance.random() < 0.2:
            steps = {str(self.name())[:200]: self.chance.randrange(-1, 70) for _ in range(3)}
            params[STEPS_KEY] = self.chance.choice([steps, self.value()])
        return params

    def message(self) -> KvflowReq:
        op = self.chance.choice([*control._OPERATIONS, "none"])
        body: Any = {
            "client": self.name(),
            "name": self.name(),
            "run": self.name(),
            "since": self.chance.choice([0, 1, self.scalar()]),
            "most_nodes": self.chance.choice([0, 5, self.scalar()]),
            "expect_next": self.scalar(),
            "recipe": self.chance.choice([RECIPE, RECIPE | {"name": "n1"}, self.value()]),
            "prefixes": self.chance.choice([{}, {"a": [1, 2, 3]}, self.value()]),
            "mode": self.chance.choice(["evict", "off", self.scalar()]),
        }
        if op != "policy" or self.chance.random() < 0.5:
            del body["mode"]
        if self.chance.random() < 0.1:
            body = self.value()
        text = json.dumps(body)
        if self.chance.random() < 0.05:
            text = text[: self.chance.randrange(len(text) + 1)]
        return KvflowReq(op=op, body=text)


def test_tags_of_every_kind_are_taken_and_leave_bounded_memory():
    fuzz, calls = Fuzz(1), Calls(page_size=1)
    in_flight: list[str] = []
    for number in range(TAGS):
        calls.arrive(str(number), fuzz.tag(), [1, 2, 3, 4])
        in_flight.append(str(number))
        if len(in_flight) > 20:
            call = in_flight.pop(fuzz.chance.randrange(len(in_flight)))
            fuzz.chance.choice([calls.finish, calls.abort])(call)
        if number % 100 == 0:
            calls.table.tick()
    counts, limits = calls.counts, calls.table.limits
    assert counts.tagged + counts.untagged == TAGS
    assert sum(counts.bad_hints.values()) > TAGS / 20
    assert len(list(calls.in_flight())) <= 20
    clients = {run.client for run in calls.table.runs()}
    assert len(clients) <= limits.clients
    assert calls.table.live_runs <= limits.clients * limits.runs_per_client
    for call in in_flight:
        calls.abort(call)
    for _ in range(limits.silent_ticks + 1):
        calls.table.tick()
    assert calls.table.live_runs == 0
    assert list(calls.table.steps()) == []


def test_messages_of_every_kind_are_answered_among_calls_and_leave_bounded_memory():
    fuzz, mini = Fuzz(2), scheduler()
    errors = 0
    for number in range(MESSAGES):
        output = control.handle(mini, fuzz.message())
        errors += bool(output.error)
        assert len(output.error) < 10_000
        assert output.error or json.loads(output.body) is not None
        if number % 40 == 0:
            tokens = fuzz.chance.choices(range(3), k=fuzz.chance.randrange(1, 20))
            mini.serve(tokens, fuzz.tag(), answer=1)
    assert 0.1 < errors / MESSAGES < 0.9
    cache, core = mini.cache, mini.cache.tree_core
    assert not cache.degraded
    cache.sanity_check()
    held = len(core._node_arena)
    assert len(core.ledger.ages) <= held
    assert len(core.ledger.hits._owners._of) <= MOST_OWNERS
    assert len(core.ledger.latest) <= 512
    assert len(core.watch._dirty) <= held
    assert len(cache.calls.table._graphs) <= cache.calls.table.limits.workflows
