"""Where arms are measured: own servers, up to their start, and a running one."""

import json
import os

import pytest
from support.bench import make_setting
from support.bench_server import BenchServer, _bench_routes  # noqa: F401
from support.recipes import make_recipe

from kvflow.bench.arms import ARMS, choose
from kvflow.bench.fleet import launches
from kvflow.bench.live import LiveRig
from kvflow.bench.local import LocalRig
from kvflow.bench.measure import Access
from kvflow.bench.plan import Block
from kvflow.bench.regime import Pools
from kvflow.bench.setting import Setting
from kvflow.engine.cpu import demo_model
from kvflow.errors import UsageError


def flag(launch, name):
    return launch.argv[launch.argv.index(name) + 1] if name in launch.argv else None


@pytest.fixture
def wanted(tmp_path):
    setting = make_setting(tmp_path)
    return launches(
        choose("all"), setting.served, Pools(500, 9000), device="cpu", model="m", environ=os.environ
    )


def test_launches_give_every_arm_a_server(wanted):
    assert list(wanted) == list(ARMS)
    assert len({launch.port for launch in wanted.values()}) == len(ARMS)
    assert {launch.host for launch in wanted.values()} == {"127.0.0.1"}


def test_launches_press_every_arm_but_the_limit(wanted):
    pools = {arm: flag(launch, "--max-total-tokens") for arm, launch in wanted.items()}
    assert pools == {**dict.fromkeys(ARMS, "500"), "limit": "9000"}


def test_launches_leave_stock_arms_without_the_plugin(wanted):
    with_cpu_alone = [a for a, one in wanted.items() if one.env.get("SGLANG_PLUGINS")]
    assert with_cpu_alone == ["lru", "hicache", "limit"]


def test_launches_start_every_mode_as_itself(wanted):
    modes = {
        arm: json.loads(one.env["KVFLOW_CONFIG"])["mode"]
        for arm, one in wanted.items()
        if "KVFLOW_CONFIG" in one.env
    }
    assert modes == {mode: mode for mode in ("off", "evict", "prefetch", "full")}


def test_launches_give_a_host_tier_to_hicache_and_kvflow_only(wanted):
    tiered = [a for a, launch in wanted.items() if "--enable-hierarchical-cache" in launch.argv]
    assert tiered == ["hicache", "off", "evict", "prefetch", "full"]


def test_launches_pass_flags_on_to_every_server(tmp_path):
    setting = make_setting(tmp_path)
    found = launches(
        choose("lru,full"), setting.served, Pools(500, 9000), device="cpu", model="m",
        flags=("--dtype", "float16"), environ=os.environ,
    )  # fmt: skip
    assert [flag(launch, "--dtype") for launch in found.values()] == ["float16", "float16"]


def test_launches_without_a_pressed_pool_leave_it_to_the_engine(tmp_path):
    setting = make_setting(tmp_path)
    found = launches(
        [ARMS["hicache"]], setting.served, Pools(None, 9000), device="cuda", model="m", environ={}
    )
    assert flag(found["hicache"], "--max-total-tokens") is None


@pytest.fixture
def rig():
    return LocalRig("cpu", "m", Access())


def test_local_rig_shares_servers_between_settings_of_one_pool_and_workflow(rig, tmp_path):
    one, two = make_setting(tmp_path, "one"), make_setting(tmp_path, "two", runs=9)
    other = make_setting(tmp_path, "other", pool_ratio=0.8)
    assert rig.key(one) == rig.key(two) != rig.key(other)


def test_local_rig_says_what_it_sets_up(rig, tmp_path):
    facts = rig.facts(make_setting(tmp_path))
    assert (facts["fixed_tokens"], facts["longest_prefix_tokens"]) == (200, 100)
    assert (facts["pool_tokens"], facts["model"]) == (120, "m")


def test_local_rig_has_the_dtype_of_the_flags(rig):
    assert rig.dtype == demo_model.best_dtype()
    assert LocalRig("cpu", "m", Access(), ("--dtype", "half")).dtype == "half"


def test_local_rig_on_a_gpu_refuses_to_set_the_link(tmp_path):
    with pytest.raises(UsageError, match="is for the CPU engine"):
        LocalRig("cuda", "m", Access()).check([make_setting(tmp_path)])


def test_local_rig_refuses_a_pool_that_holds_no_call_before_anything_starts(rig, tmp_path):
    with pytest.raises(UsageError, match="leaves 40 tokens"):
        rig.check([make_setting(tmp_path, pool_ratio=0.2)])


def test_local_rig_on_a_gpu_without_a_model_says_so(tmp_path):
    setting = make_setting(tmp_path, link_ratio=None)
    with pytest.raises(UsageError, match="no model to serve"):
        LocalRig("cuda", None, Access()).check([setting])


def test_local_rig_shows_the_models_name_and_not_its_path(tmp_path):
    rig = LocalRig("cpu", str(tmp_path / "my-model"), Access())
    assert rig.facts(make_setting(tmp_path))["model"] == "my-model"


@pytest.fixture
def plain(tmp_path) -> Setting:
    loaded = make_recipe(tmp_path, {"a": {"fixed_tokens": 20, "output_tokens": 2}})
    return Setting(name="flow", served=loaded, driven=loaded, runs=1, concurrency=1)


async def test_live_rig_puts_back_the_mode_that_it_found(plain):
    with BenchServer(mode="evict").running() as fake:
        rig = LiveRig(fake.url, Access())
        with rig.opened([plain], [ARMS["full"]], print) as stage:
            facts = await stage.prepare(plain)
            trial = await stage.take_turn(plain, Block("flow", 0, ARMS["full"], True, False))
            during = fake.mode
            await stage.leave()
    assert (facts["mode_found"], during, fake.mode) == ("evict", "full", "evict")
    assert not trial.failure


async def test_live_rig_refuses_a_server_without_kvflow(plain):
    fake = BenchServer(mode=None)
    with (
        fake.running(),
        LiveRig(fake.url, Access()).opened([plain], [ARMS["full"]], print) as stage,
    ):
        with pytest.raises(UsageError, match="runs without kvflow"):
            await stage.prepare(plain)
        await stage.leave()
    assert fake.steps == []


def test_live_rig_refuses_stock_arms(plain):
    with pytest.raises(UsageError, match="cannot bench hicache"):
        LiveRig("http://x", Access()).check([plain], choose("hicache,full"))


def test_live_rig_refuses_ratios(tmp_path):
    setting = make_setting(tmp_path)
    with pytest.raises(UsageError, match="neither --pool-ratio nor --link-ratio"):
        LiveRig("http://x", Access()).check([setting], choose("full"))
