"""Several applications on one server: none moves another's ranks, and none leaves a trace."""

import random
from typing import Any

import pytest
import support.engine  # noqa: F401 - before SGLang
from support.mini_scheduler import MiniScheduler
from support.prefixes import scheduler
from support.real_cache import nodes, tokens_to
from support.tags import by

pytestmark = pytest.mark.engine

AGENTS = 4


def prefix(client: str, agent: int) -> list[int]:
    return random.Random(f"{client} {agent}").choices(range(1000), k=20)


def ranks(mini: MiniScheduler, client: str) -> dict[tuple[int, ...], tuple[int, int]]:
    """Spent or kept, and steps, of a client's nodes, by path."""
    begins = {tuple(prefix(client, agent)[:3]) for agent in range(AGENTS)}
    core = mini.cache.tree_core
    paths = {tuple(tokens_to(node)): core.rank(node)[:2] for node in nodes(mini.cache)}
    return {path: rank for path, rank in paths.items() if path[:3] in begins}


def speak(mini: MiniScheduler, client: str, call: int, **more: Any) -> None:
    """A call of a client, whose agents all have the names of the other's."""
    chance = random.Random(f"{client} {call}")
    agent = chance.randrange(AGENTS)
    steps = {f"agent{other}": chance.randrange(1, 9) for other in range(AGENTS)}
    tag = by(f"agent{agent}", 20, client=client, run=f"r{call % 2}", steps=steps, **more)
    mini.serve([*prefix(client, agent), call, call], tag, answer=2)


def leave(mini: MiniScheduler, client: str, how: str) -> None:
    if how == "ends its runs":
        for run in ("r0", "r1"):
            mini.cache.end_run(client, run, expect_next=False)
    elif how == "takes back its workflow":
        mini.cache.forget_workflow(client, "work")
    else:
        for _ in range(mini.cache.calls.table.limits.silent_ticks):
            mini.cache.tick()


def test_client_with_the_same_agents_and_other_prompts_moves_nobodys_ranks():
    alone, shared = scheduler(tokens=4096), scheduler(tokens=4096)
    for call in range(30):
        speak(alone, "one", call)
        speak(shared, "one", call)
        for _ in range(2):
            speak(shared, "other", 7 * call)
        assert ranks(alone, "one") == ranks(shared, "one")


@pytest.mark.parametrize("how", ["ends its runs", "takes back its workflow"])
def test_end_of_a_client_leaves_the_ranks_that_are_without_it(how):
    alone, shared = scheduler(tokens=4096), scheduler(tokens=4096)
    for call in range(20):
        speak(alone, "one", call)
        speak(shared, "one", call)
        speak(shared, "other", call)
    leave(shared, "other", how)
    assert ranks(alone, "one") == ranks(shared, "one")
    steps = {rank[1] for rank in ranks(shared, "other").values()}
    assert steps == {-shared.cache.untagged_steps}
    assert [change.client for change in shared.cache.calls.table.steps()] == ["one"] * AGENTS


def test_end_of_a_client_that_shares_a_prefix_leaves_the_others_steps():
    alone, shared = scheduler(tokens=4096), scheduler(tokens=4096)
    common = list(range(50))
    for mini in (alone, shared):
        mini.serve([*common, 1], by("a", 50, client="one", steps={"a": 3}))
    shared.serve([*common, 2], by("a", 50, client="other", steps={"a": 1}))

    def steps(mini: MiniScheduler) -> int:
        [rank] = [
            mini.cache.tree_core.rank(node)
            for node in nodes(mini.cache)
            if tokens_to(node) == common
        ]
        return -rank[1]

    assert (steps(alone), steps(shared)) == (3, 1)
    leave(shared, "other", "takes back its workflow")
    assert steps(shared) == 3


def test_prefix_that_nobody_speaks_for_any_more_counts_less_than_one_needed_late():
    mini = scheduler(tokens=4096)
    common = list(range(50))
    mini.serve([*common, 1], by("a", 50, client="one", steps={"a": 9}))
    mini.serve([*common, 2], by("a", 50, client="other", steps={"a": 1}, final=True))
    [end] = [node for node in nodes(mini.cache) if tokens_to(node) == common]
    assert -mini.cache.tree_core.rank(end)[1] == 9


def test_silence_of_all_clients_leaves_every_rank_as_without_tags():
    mini = scheduler(tokens=4096)
    for call in range(12):
        speak(mini, "one", call)
        speak(mini, "other", call)
    leave(mini, "one", "falls silent")
    assert list(mini.cache.calls.table.steps()) == []
    found = {**ranks(mini, "one"), **ranks(mini, "other")}
    assert {rank[1] for rank in found.values()} == {-mini.cache.untagged_steps}
