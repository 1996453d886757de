"""A workflow that is driven against a model server of these tests."""

from collections.abc import Callable
from typing import Any

from support.fake_server import FakeServer, Seen

from kvflow.client.drive import Settings, drive
from kvflow.client.records import Result
from kvflow.client.server import connect
from kvflow.recipe.load import Loaded

SEQUENCE: dict[str, dict[str, object]] = {
    "planner": {},
    "executor": {"after": "planner"},
    "reviewer": {"after": "executor"},
}


def settings(**changes: Any) -> Settings:
    return Settings(**{"client": "app", "runs": 1, "concurrency": 1, "seed": 7, **changes})


async def driven(fake: FakeServer, loaded: Loaded, *observers: Any, **changes: Any) -> Result:
    with fake.running():
        async with connect(fake.url) as server:
            return await drive(loaded, server, settings(**changes), observers)


def agents(fake: FakeServer) -> list[str]:
    return [seen.agent for seen in fake.seen]


def user_text(seen: Seen) -> str:
    return str(seen.body["messages"][-1]["content"])


def first(agent: str, fault: int | str) -> Callable[[Seen], int | str | None]:
    """A fault in the first call of an agent."""
    done = set[str]()

    def decide(seen: Seen) -> int | str | None:
        if seen.agent != agent or agent in done:
            return None
        done.add(agent)
        return fault

    return decide
