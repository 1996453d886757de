"""Where arms are measured: own servers, up to their start, and a running one."""

import contextlib
import dataclasses
import json
import os
import signal
from dataclasses import dataclass, field, replace

import pytest
from support.bench import Silent, make_outcome, make_setting
from support.bench_server import BenchServer, _bench_routes  # noqa: F401
from support.recipes import make_recipe

from kvflow.bench import live, session, stages
from kvflow.bench.arms import ARMS, choose
from kvflow.bench.fleet import SideBySide, Station, launches
from kvflow.bench.live import LiveRig
from kvflow.bench.local import LocalRig
from kvflow.bench.measure import Access
from kvflow.bench.regime import Pools
from kvflow.bench.session import Outcome
from kvflow.bench.setting import Setting
from kvflow.bench.stages import CpuStage, LocalStage
from kvflow.client.exchange import IdsPrompt
from kvflow.engine.cpu import demo_model
from kvflow.engine.launch import checks
from kvflow.errors import KvflowError, MissingPart, UsageError
from kvflow.recipe.model import EngineSpec


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


@pytest.mark.parametrize("said", [True, False])
def test_launches_give_arms_their_host_tier_whatever_the_recipe_says(tmp_path, said):
    served = make_setting(tmp_path).served
    engine = EngineSpec(model="m", args={"enable-hierarchical-cache": said})
    told = dataclasses.replace(served, recipe=served.recipe.model_copy(update={"engine": engine}))
    found = launches(choose("all"), told, Pools(500, 9000), device="cuda", model="m", environ={})
    tiered = [a for a, launch in found.items() if "--enable-hierarchical-cache" in launch.argv]
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


@pytest.mark.parametrize("typed", [("--api-key", "sesame"), ("--admin-api-key=sesame",)])
def test_local_rig_refuses_a_key_that_its_servers_would_want_of_it(tmp_path, typed):
    with pytest.raises(UsageError) as refusal:
        LocalRig("cpu", "m", Access(), typed).check([make_setting(tmp_path)])
    assert refusal.value.what.startswith(typed[0].partition("=")[0])
    assert "sesame" not in str(refusal.value)


def test_local_rig_refuses_a_key_in_the_recipe_s_flags(tmp_path):
    setting = make_setting(tmp_path, link_ratio=None)
    engine = setting.served.recipe.engine.model_copy(update={"args": {"api-key": "sesame"}})
    recipe = setting.served.recipe.model_copy(update={"engine": engine})
    keyed = replace(setting, served=replace(setting.served, recipe=recipe))
    with pytest.raises(UsageError, match="--api-key does not go with"):
        LocalRig("cuda", "m", Access()).check([keyed])


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
            "repeat 1: it has no server: not enough GPU memory, CUDA out of memory, make room",
        )
    ]
    assert berths.asked == ["hicache", "limit", "evict", "full", "limit", "evict", "full"]
    whole = [(trial.arm, trial.repeat) for trial in outcome.measured[0].trials if trial.whole]
    assert whole == [(arm, repeat) for repeat in (0, 1) for arm in ("limit", "evict", "full")]
    assert outcome.measured[0].facts["device"] == "cuda"
    assert "recompute_ms" not in outcome.measured[0].facts


@dataclass(frozen=True)
class CpuRig(LocalRig):
    """A CPU's rig on servers that are up."""

    stage: CpuStage | None = None

    @contextlib.contextmanager
    def opened(self, settings, arms, narrate):
        yield self.stage


@pytest.fixture
def on_cpu(tmp_path, monkeypatch):
    """Bench `hicache,full` on a CPU, on two servers."""

    async def one_call(server, tokens, seed):
        await server.ask(IdsPrompt((20, 21)), max_tokens=1, what="the gauge", exact=True)
        return 0.5

    def bench(hicache, full, repeats=2, link_ratio=None):
        setting = make_setting(tmp_path, link_ratio=link_ratio)
        rig = LocalRig("cpu", "m", Access(timeout_s=2.0))
        with hicache.running(), full.running():
            stations = {"hicache": Station(hicache.url), "full": Station(full.url)}
            stage = CpuStage(rig, SideBySide(stations, {}), tmp_path / "link")
            outcome = make_outcome(setting, "hicache,full", repeats)
            session.run(outcome, CpuRig("cpu", "m", Access(), stage=stage), Silent())
        return outcome, stage

    monkeypatch.setattr(stages, "recompute_seconds", one_call)
    monkeypatch.setattr(stages, "kv_bytes_per_token", lambda *_: 1000)
    monkeypatch.setattr(stages, "_IDLE_S", 2.0)
    return bench


def whole(outcome):
    return [trial.arm for trial in outcome.measured[0].trials if trial.whole]


class Stuck(BenchServer):
    """A server that hangs in its first call, and whose cache cannot be emptied from then on."""

    def __init__(self):
        super().__init__(fault=lambda seen: "hang")

    def flush(self):
        return 400 if self.seen else super().flush()


def test_cpu_stage_measures_recomputing_on_another_server_where_one_cannot(on_cpu):
    outcome, _ = on_cpu(BenchServer(mode=None, fault=lambda seen: 500), BenchServer())
    assert outcome.measured[0].facts["recompute_ms"] == 500
    assert whole(outcome) == ["full", "full"]


@pytest.mark.parametrize(("link_ratio", "after"), [(0.5, 500), (None, None)])
def test_cpu_stage_measures_recomputing_again_where_a_link_was_set_by_it(on_cpu, link_ratio, after):
    outcome, _ = on_cpu(BenchServer(mode=None), BenchServer(), link_ratio=link_ratio)
    assert outcome.measured[0].facts.get("recompute_after_ms") == after


def test_cpu_stage_goes_on_without_an_arm_whose_server_hangs(on_cpu):
    outcome, stage = on_cpu(Stuck(), BenchServer())
    assert list(stage.fleet.failed) == ["hicache"]
    [(_, arm, why)] = outcome.broken
    assert (arm, whole(outcome)) == ("hicache", ["full", "full"])
    assert why.startswith("repeat 1: it has no server: it hung or died, and was ended, ")


def test_cpu_stage_keeps_the_server_of_an_arm_that_failed_and_is_idle(on_cpu):
    outcome, stage = on_cpu(BenchServer(mode=None), BenchServer(fault=lambda seen: 500))
    assert [arm for _, arm, _ in outcome.broken] == ["full"]
    assert stage.fleet.failed == {}


def test_cpu_stage_ends_the_server_of_an_arm_that_hangs_in_its_turn(on_cpu):
    outcome, stage = on_cpu(BenchServer(mode=None), Stuck())
    assert [arm for _, arm, _ in outcome.broken] == ["full"]
    assert list(stage.fleet.failed) == ["full"]


def test_cpu_stage_that_can_measure_recomputing_nowhere_says_so_arm_by_arm(on_cpu):
    bad = [BenchServer(fault=lambda seen: 500) for _ in range(2)]
    outcome, _ = on_cpu(*bad)
    assert outcome.error.what == "what recomputing costs cannot be measured"
    assert outcome.error.why.startswith("hicache: the gauge: HTTP 500")
    assert "; full: the gauge: HTTP 500" in outcome.error.why


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


def benched(setting: Setting, url: str, *, api_key: str | None = None) -> Outcome:
    """Bench a running server in one mode, once."""
    outcome = make_outcome(setting, "full", 1)
    session.run(outcome, LiveRig(url, Access(api_key)), Silent())
    return outcome


def test_live_rig_puts_back_the_mode_that_it_found(plain):
    with BenchServer(mode="evict").running() as fake:
        outcome = benched(plain, fake.url)
    assert outcome.measured[0].facts["mode_found"] == "evict"
    assert [step for step in fake.steps if "mode" in step] == ["mode full", "mode evict"]
    assert outcome.broken == []


def test_live_rig_says_that_the_environment_is_the_clients(plain):
    with BenchServer().running() as fake:
        assert benched(plain, fake.url).measured[0].facts["environment_of"] == "client"


@pytest.mark.parametrize("form", ["{}/v1", "{}/"])
def test_live_rig_takes_a_url_as_it_is_given_elsewhere(plain, form):
    with BenchServer().running() as fake:
        outcome = benched(plain, form.format(fake.url).removeprefix("http://"))
    assert (outcome.error, outcome.broken, fake.mode) == (None, [], "off")


def test_live_rig_refuses_a_server_without_kvflow(plain):
    with BenchServer(mode=None).running() as fake:
        error = benched(plain, fake.url).error
    assert isinstance(error, UsageError)
    assert "runs without kvflow" in error.what
    assert fake.steps == []


def test_live_rig_refuses_a_server_that_does_not_know_the_workflow(plain):
    with BenchServer(workflows=((None, "other"), ("app", "flow"))).running() as fake:
        error = benched(plain, fake.url).error
    assert isinstance(error, UsageError)
    assert "does not know the workflow flow" in error.what
    assert error.why == "it knows other"
    assert "kvflow serve --recipe" in error.hint
    assert fake.steps == []


def test_live_rig_puts_the_mode_back_after_a_second_signal(plain):
    """The first one hits a call, the second one what the first one has to wait for."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)

    class Impatient(BenchServer):
        def policy(self, body):
            if body == {"mode": "off"}:
                os.kill(os.getpid(), signal.SIGINT)
            return super().policy(body)

    def interrupt(seen):
        os.kill(os.getpid(), signal.SIGINT)
        return "hang"

    try:
        with Impatient(fault=interrupt).running() as fake:
            outcome = benched(plain, fake.url)
    finally:
        signal.signal(signal.SIGINT, before)
    assert outcome.interrupted
    assert fake.steps[-1] == "mode off"


def test_live_rig_that_cannot_put_the_mode_back_says_which_and_how(plain):
    class Deaf(BenchServer):
        def policy(self, body):
            return super().policy(body) if body != {"mode": "off"} else (504, {"error": "busy"})

    with Deaf(api_key="secret").running() as fake:
        outcome = benched(plain, fake.url, api_key="secret")
    error = outcome.left_undone
    assert error.what == f"mode off was not put back on {fake.url}"
    assert "HTTP 504" in error.why
    assert f'curl -X PATCH {fake.url}/kvflow/policy -d \'{{"mode": "off"}}\'' in error.hint
    assert "secret" not in error.hint


def test_live_rig_does_not_wait_long_for_a_server_that_takes_no_mode_back(plain, monkeypatch):
    monkeypatch.setattr(live, "_LEAVING_S", 0.1)

    class Deaf(BenchServer):
        def policy(self, body):
            if body == {"mode": "off"}:
                self.release.wait(20)
            return super().policy(body)

    with Deaf().running() as fake:
        outcome = benched(plain, fake.url)
        fake.release.set()
    assert outcome.left_undone.why == "no answer within 0.1 s"


def test_live_rig_refuses_stock_arms(plain):
    with pytest.raises(UsageError, match="cannot bench hicache"):
        LiveRig("http://x", Access()).check([plain], choose("hicache,full"))


def test_live_rig_refuses_ratios(tmp_path):
    setting = make_setting(tmp_path)
    with pytest.raises(UsageError, match="neither --pool-ratio nor --link-ratio"):
        LiveRig("http://x", Access()).check([setting], choose("full"))
