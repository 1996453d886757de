"""Where arms are measured: own servers, up to their start, and a running one."""

import contextlib
import json
import os
from dataclasses import dataclass, field

import pytest
from support.bench import Silent, make_outcome, make_setting
from support.bench_server import BenchServer, _bench_routes  # noqa: F401
from support.recipes import make_recipe

from kvflow.bench import session
from kvflow.bench.arms import ARMS, choose
from kvflow.bench.fleet import Station, launches
from kvflow.bench.live import LiveRig
from kvflow.bench.local import LocalRig, LocalStage
from kvflow.bench.measure import Access
from kvflow.bench.plan import Block
from kvflow.bench.regime import Pools
from kvflow.bench.setting import Setting
from kvflow.engine.cpu import demo_model
from kvflow.engine.launch import checks
from kvflow.errors import KvflowError, MissingPart, UsageError


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


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_launches_pass_flags_on_to_every_server(tmp_path, device):
    setting = make_setting(tmp_path)
    found = launches(
        choose("all"), setting.served, Pools(500, 9000), device=device, model="m",
        flags=("--mem-fraction-static", "0.8"), environ={},
    )  # fmt: skip
    assert [flag(one, "--mem-fraction-static") for one in found.values()] == ["0.8"] * len(ARMS)


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


@dataclass
class Berths:
    """One server at a time, up at once; one that has no room never.

    Attributes:
        urls: of servers that can be started, by name.
        asked: for which arms there were stations, in order.
    """

    urls: dict[str, str]
    asked: list[str] = field(default_factory=list)

    def server_of(self, arm):
        return arm.name if arm.mode is None else "kvflow"

    async def station(self, arm):
        self.asked.append(arm.name)
        if self.server_of(arm) not in self.urls:
            raise KvflowError("not enough GPU memory", "CUDA out of memory", "make room")
        return Station(self.urls[self.server_of(arm)])


@dataclass(frozen=True)
class GpuRig(LocalRig):
    """A GPU's rig, but for its servers."""

    berths: Berths | None = None

    @contextlib.contextmanager
    def opened(self, settings, arms, narrate):
        yield LocalStage(self, self.berths)


def test_local_stage_goes_on_without_an_arm_whose_server_cannot_be_started(tmp_path):
    outcome = make_outcome(make_setting(tmp_path, link_ratio=None), "hicache,limit,evict,full", 2)
    with BenchServer().running() as kvflow, BenchServer(mode=None).running() as stock:
        berths = Berths({"kvflow": kvflow.url, "limit": stock.url})
        session.run(outcome, GpuRig("cuda", "m", Access(), berths=berths), Silent())
    assert outcome.broken == [
        (
            "flow",
            "hicache",
            "repeat 1: its server cannot be started: not enough GPU memory, CUDA out of memory, "
            "make room",
        )
    ]
    assert berths.asked == ["hicache", "limit", "evict", "full", "limit", "evict", "full"]
    whole = [(trial.arm, trial.repeat) for trial in outcome.measured[0].trials if trial.whole]
    assert whole == [(arm, repeat) for repeat in (0, 1) for arm in ("limit", "evict", "full")]
    assert outcome.measured[0].facts["device"] == "cuda"
    assert "recompute_ms" not in outcome.measured[0].facts


def test_local_rig_on_a_gpu_finds_what_no_start_could_do_without_before_the_first(
    tmp_path, monkeypatch
):
    setting = make_setting(tmp_path, link_ratio=None)
    monkeypatch.setattr(checks, "gpu_visible", lambda environ: False)
    with (
        pytest.raises(MissingPart, match="no NVIDIA GPU"),
        LocalRig("cuda", "m", Access()).opened([setting], choose("hicache,full"), print),
    ):
        pass


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
