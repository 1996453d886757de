"""What untagged traffic keeps beside a workflow that would take the whole pool."""

import pytest
from support.mini_scheduler import MiniScheduler
from support.prefixes import evict_all, node_at
from support.real_cache import build, nodes, tokens_to
from support.tags import by

from kvflow.engine.snapshot import MOST_NODES, take
from kvflow.policy.share import QUIET_TICKS
from kvflow.tui.forecast import Forecast, Tier
from kvflow.tui.tree import Tree

pytestmark = pytest.mark.engine

CHAT = [60] * 20
NEAR = {f"a{i}": 1 for i in range(9)}


def beside_a_workflow(share: float, agents: int) -> MiniScheduler:
    """A pool of 200 with one untagged prompt of 20 in it, then agents with prefixes of 40."""
    cache = build(tokens=200, host_ratio=0, settings={"policy": {"untagged_share": share}})
    mini = MiniScheduler(cache)
    mini.serve(CHAT, answer=1)
    for agent in range(agents):
        mini.serve([agent] * 40 + [7], by(f"a{agent}", 40, steps=NEAR), answer=1)
    return mini


def test_untagged_prompt_within_the_share_outlives_nearer_prefixes():
    mini = beside_a_workflow(0.1, agents=9)
    assert node_at(mini.cache, CHAT) is not None


def test_what_a_tagged_call_makes_while_it_runs_takes_nothing_of_the_share():
    mini = beside_a_workflow(0.1, agents=2)
    mini.arrive([8] * 40 + list(range(200, 225)), by("a8", 40, steps=NEAR), answer=9)
    mini.prefill()
    assert mini.cache.tree_core.share.resident == len(CHAT)
    for agent in range(2, 5):
        mini.arrive([agent] * 40 + [7], by(f"a{agent}", 40, steps=NEAR), answer=1)
        mini.prefill()
        mini.acknowledge()
    assert node_at(mini.cache, CHAT) is not None
    mini.drain()


@pytest.mark.parametrize("goes_away", [False, True])
def test_share_counts_what_a_call_leaves_only_if_it_went_away(goes_away):
    mini = beside_a_workflow(0.1, agents=2)
    req = mini.arrive([8] * 40 + list(range(200, 225)), by("a8", 40, steps=NEAR), answer=9)
    mini.prefill()
    if goes_away:
        mini.abort(req)
    mini.drain()
    assert mini.cache.tree_core.share.resident == len(CHAT) + (25 if goes_away else 0)


def test_untagged_prompt_without_a_share_goes_first():
    mini = beside_a_workflow(0.0, agents=9)
    assert node_at(mini.cache, CHAT) is None


def test_untagged_prompt_beyond_the_share_goes_first():
    mini = beside_a_workflow(0.05, agents=9)
    assert node_at(mini.cache, CHAT) is None


def test_untagged_prompt_that_nobody_uses_any_more_goes_first():
    mini = beside_a_workflow(0.1, agents=4)
    for _ in range(QUIET_TICKS):
        mini.cache.tick()
    order = evict_all(mini.cache)
    assert all(order.index(CHAT) < order.index([agent] * 40) for agent in range(4))


def test_share_is_soft_and_goes_when_nothing_else_is_left():
    mini = beside_a_workflow(0.1, agents=4)
    assert evict_all(mini.cache)[-1] == CHAT
    assert mini.cache.evictable_size() == 0


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1])
def test_order_that_the_console_foretells_is_that_in_which_they_go(share):
    mini = beside_a_workflow(share, agents=4)
    mini.serve([61] * 9, answer=1)
    tree, frame = Tree(), take(mini, MOST_NODES)
    tree.apply(frame)
    by_id = {node.id: tokens_to(node) for node in nodes(mini.cache)}
    foretold = [by_id[one] for one in Forecast(tree, Tier.DEVICE, frame.untagged_spare).turns]
    assert foretold == evict_all(mini.cache)
