from pathlib import Path

import pytest
from support.fake_server import FakeServer
from support.recipes import make_recipe

from kvflow.client.server import connect
from kvflow.client.tagging import WARMING_CLIENT
from kvflow.client.warm import warm
from kvflow.errors import KvflowError
from kvflow.recipe.load import Loaded

AGENTS: dict[str, dict[str, object]] = {
    "planner": {},
    "worker": {"fixed_tokens": 40, "after": "planner"},
}


async def warmed(fake: FakeServer, loaded: Loaded, *agents: str) -> list[str]:
    with fake.running():
        async with connect(fake.url) as server:
            return [agent async for agent in warm(loaded, server, agents or None)]


async def test_warm_asks_once_for_each_agents_prefix_and_a_token_more(tmp_path: Path) -> None:
    fake = FakeServer()
    assert await warmed(fake, make_recipe(tmp_path, AGENTS)) == ["planner", "worker"]
    chat, ids = fake.seen
    assert chat.body["messages"][0] == {"role": "system", "content": "You are planner."}
    assert chat.body["max_tokens"] == 1
    assert len(ids.body["input_ids"]) == 41
    assert ids.params["kvflow"]["fixed_tokens"] == 40


async def test_warm_of_some_agents_asks_for_no_other(tmp_path: Path) -> None:
    fake = FakeServer()
    assert await warmed(fake, make_recipe(tmp_path, AGENTS), "worker") == ["worker"]
    assert [seen.agent for seen in fake.seen] == ["worker"]


async def test_warm_opens_a_run_of_its_own_that_is_over_with_its_call(tmp_path: Path) -> None:
    fake = FakeServer()
    await warmed(fake, make_recipe(tmp_path, AGENTS))
    tags = [seen.params["kvflow"] for seen in fake.seen]
    assert [(tag["client"], tag["final"]) for tag in tags] == [(WARMING_CLIENT, True)] * 2
    assert len({tag["run"] for tag in tags}) == 2


async def test_warm_of_a_server_that_refuses_says_for_which_agent(tmp_path: Path) -> None:
    fake = FakeServer(fault=lambda seen: 500)
    with pytest.raises(KvflowError, match="warming planner"):
        await warmed(fake, make_recipe(tmp_path, AGENTS))
