from itertools import pairwise

import pytest
from support.fake_server import FakeServer
from support.recipes import make_recipe

from kvflow.bench.model import FixedSet
from kvflow.bench.regime import Pools, link_gbps, pools, recompute_seconds
from kvflow.bench.setting import Setting
from kvflow.client.server import connect
from kvflow.errors import KvflowError, UsageError
from kvflow.workload import plan_run


def setting(folder, **changes) -> Setting:
    agents = {
        "a": {"fixed_tokens": 100, "output_tokens": 5},
        "b": {"fixed_tokens": 100, "output_tokens": 8, "after": "a"},
    }
    loaded = make_recipe(folder, agents, workload={"dynamic_tokens": 7})
    given = {"runs": 1, "concurrency": 2, "pool_ratio": 0.6}
    return Setting(name="s", served=loaded, driven=loaded, **{**given, **changes})


def test_pools_press_by_the_ratio_and_leave_room_for_everything_in_the_limit(tmp_path):
    found = pools(setting(tmp_path), FixedSet(unique=200, longest=100))
    tails = 2 * ((7 + 5) + (7 + 8))
    assert found == Pools(120, 200 + 2 * tails + 2048)


def test_limit_leaves_room_for_what_comes_before_an_agent_speaks_again(tmp_path):
    agents = {
        "a": {"fixed_tokens": 100, "output_tokens": 5},
        "often": {"fixed_tokens": 100, "output_tokens": 5, "after": [{"agent": "a", "p": 0.9}]},
        "seldom": {"fixed_tokens": 100, "output_tokens": 5, "after": [{"agent": "a", "p": 0.1}]},
    }
    loaded = make_recipe(tmp_path, agents, workload={"dynamic_tokens": 7})
    chance = Setting(name="s", served=loaded, driven=loaded, runs=1, concurrency=1)
    paths = [{call.agent for call in plan_run(loaded, run, 0)} for run in range(24)]
    spoke = [-1, *(run for run, path in enumerate(paths) if "seldom" in path)]
    gap = max(later - earlier for earlier, later in pairwise(spoke))
    assert gap > 3
    assert pools(chance, FixedSet(300, 100)).limit == 300 + (gap + 1) * 2 * (7 + 5) + 2048


def test_pools_without_a_ratio_leave_the_pressed_one_to_the_engine(tmp_path):
    assert pools(setting(tmp_path, pool_ratio=None), FixedSet(200, 100)).pressed is None


def test_pools_leave_room_for_plain_chats_in_the_limit(tmp_path):
    without = pools(setting(tmp_path), FixedSet(200, 100)).limit
    assert pools(setting(tmp_path, plain_lanes=3), FixedSet(200, 100)).limit > without


@pytest.mark.parametrize(("ratio", "fits"), [(0.575, False), (0.58, True)])
def test_pool_that_holds_no_whole_call_is_refused_with_the_least_ratio(tmp_path, ratio, fits):
    asked = setting(tmp_path, pool_ratio=ratio)  # the longest call: 100 + 7 + 8 of 200
    if fits:
        assert pools(asked, FixedSet(200, 100)).pressed == 116
        return
    with pytest.raises(UsageError, match="leaves 115 tokens") as error:
        pools(asked, FixedSet(200, 100))
    assert "needs 115" in error.value.why
    assert "0.58" in error.value.hint


def clock(ttfts):
    """A clock by which the calls in turn take so long to their first token."""
    now, calls = [0.0], iter(ttfts)

    def read() -> float:
        read.reads += 1
        if read.reads % 3 == 2:  # sent, first token, end
            now[0] += next(calls)
        return now[0]

    read.reads = 0
    return read


async def test_recompute_is_the_median_miss_less_the_median_hit():
    ttfts = [1.0, 0.2, 1.1, 0.3, 9.0, 0.25, 1.2, 0.1, 0.9, 0.9]
    with FakeServer().running() as fake:
        async with connect(fake.url, clock=clock(ttfts)) as server:
            found = await recompute_seconds(server, 40, seed=1)
    assert found == pytest.approx(1.1 - 0.25)
    prompts = [seen.body["input_ids"] for seen in fake.seen]
    for miss, hit in zip(prompts[::2], prompts[1::2], strict=True):
        assert miss[:40] == hit[:40]
        assert miss[40:] != hit[40:]
    assert len({tuple(prompt[:40]) for prompt in prompts}) == 5


async def test_recompute_that_costs_nothing_is_an_error():
    with FakeServer().running() as fake:
        async with connect(fake.url, clock=clock([0.5] * 10)) as server:
            with pytest.raises(KvflowError, match="nothing that could be measured"):
                await recompute_seconds(server, 40, seed=1)


def test_link_loads_in_its_share_of_the_recompute_time():
    gbps = link_gbps(0.5, recompute_s=0.8, prefix_bytes=4_000_000)
    assert 4_000_000 / (gbps * 1e9) == pytest.approx(0.4)
