import asyncio
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from support.bench_server import BenchServer, _bench_routes  # noqa: F401
from support.recipes import make_recipe

from kvflow.bench import measure
from kvflow.bench.arms import ARMS
from kvflow.bench.control import Control
from kvflow.bench.fleet import Station
from kvflow.bench.measure import Access, take_turn
from kvflow.bench.plan import Block
from kvflow.bench.setting import Setting
from kvflow.bench.trial import Trial, hits
from kvflow.client.records import CallState
from kvflow.client.server import Server
from kvflow.errors import KvflowError
from kvflow.telemetry.nvml import NoGpus


@pytest.fixture
def setting(tmp_path):
    agents = {
        "a": {"fixed_tokens": 100, "output_tokens": 5},
        "b": {"fixed_tokens": 100, "output_tokens": 5, "after": "a"},
    }
    loaded = make_recipe(tmp_path, agents, workload={"dynamic_tokens": 10})
    return Setting(name="flow", served=loaded, driven=loaded, runs=2, concurrency=1)


def block(arm="full", repeat=0, *, first=True, last=False) -> Block:
    return Block("flow", repeat, ARMS[arm], first, last)


async def turns(fake, setting, *blocks, timeout_s=20.0) -> list[Trial]:
    station = Station(fake.url)
    return [await take_turn(setting, one, station, Access(timeout_s=timeout_s)) for one in blocks]


@pytest.fixture
def branching(tmp_path):
    """A run goes to one of three agents."""
    agents = {"start-here": {"fixed_tokens": 100, "output_tokens": 2}} | {
        name: {
            "fixed_tokens": 100,
            "output_tokens": 2,
            "after": {"agent": "start-here", "p": p},
        }
        for name, p in (("often", 0.45), ("likewise", 0.45), ("seldom", 0.1))
    }
    loaded = make_recipe(tmp_path, agents, workload={"dynamic_tokens": 10})
    return Setting(name="flow", served=loaded, driven=loaded, runs=4, concurrency=1)


def path(trial) -> list[str]:
    return [call.call.agent for call in trial.calls]


async def test_turn_switches_the_mode_empties_the_cache_and_warms_it_until_hits_settle(setting):
    with BenchServer().running() as fake:
        [trial] = await turns(fake, setting, block())
    assert fake.steps[:2] == ["mode full", "flush"]
    # Rounds: cold, warm, and one that is like the one before; then two runs are measured.
    assert trial.warm_rounds == 3
    assert fake.steps[2:] == ["call a", "call b"] * (3 + 2)
    assert not trial.failure


async def test_turn_measures_runs_with_prompts_that_only_share_fixed_prefixes(setting):
    with BenchServer().running() as fake:
        [trial] = await turns(fake, setting, block())
    assert [run.ok for run in trial.runs] == [True, True]
    assert [call.state for call in trial.calls] == [CallState.DONE] * 4
    assert (hits(trial.calls).device_share, hits(trial.calls).reusable) == (1.0, 400)
    assert all(answer.cached_device < 105 for answer in trial.answers)


async def test_turn_of_the_same_arm_goes_on_with_the_warm_cache(setting):
    with BenchServer().running() as fake:
        first, second = await turns(fake, setting, block(), block(repeat=1, first=False))
    assert fake.steps.count("flush") == 1
    assert (first.warm_rounds, second.warm_rounds) == (3, 0)


async def test_turn_of_another_mode_on_the_server_begins_with_an_empty_cache(setting):
    with BenchServer().running() as fake:
        await turns(fake, setting, block("evict"), block("full"), block("evict", 1, first=False))
    assert [step for step in fake.steps if not step.startswith("call")] == [
        "mode evict", "flush", "mode full", "flush", "mode evict", "flush"
    ]  # fmt: skip


async def test_turn_of_a_stock_arm_switches_no_mode(setting):
    with BenchServer(mode=None).running() as fake:
        [trial] = await turns(fake, setting, block("hicache"))
    assert fake.steps[0] == "flush"
    assert trial.counts is None


async def test_turn_counts_what_the_engine_did_while_runs_were_measured(setting):
    with BenchServer().running() as fake:
        [trial] = await turns(fake, setting, block())
    assert trial.counts["prefetches"] == 4  # the fake counts one a call


async def test_turns_of_all_arms_get_other_filler_but_the_same_first_and_last_prompts(setting):
    asked = {}
    for arm in ("hicache", "full"):
        with BenchServer().running() as fake:
            [trial] = await turns(fake, setting, block(arm, last=True))
        prompts = [tuple(seen.body["input_ids"]) for seen in fake.seen]
        asked[arm] = prompts
        assert prompts[:2] == prompts[-2:]
        assert trial.cold == trial.again
        assert len(trial.cold) == 2
    assert asked["hicache"][:2] == asked["full"][:2]
    assert not set(asked["hicache"][2:-2]) & set(asked["full"][2:-2])


async def test_turns_of_other_repeats_measure_other_runs_and_those_of_other_arms_the_same(
    branching,
):
    paths = {}
    for arm in ("evict", "full"):
        with BenchServer().running() as fake:
            blocks = [block(arm, repeat, first=repeat == 0) for repeat in range(3)]
            paths[arm] = [path(trial) for trial in await turns(fake, branching, *blocks)]
    assert paths["evict"] == paths["full"]
    assert len({tuple(one) for one in paths["full"]}) == 3


async def test_turn_warms_with_runs_that_are_never_measured_but_for_the_first_one(branching):
    with BenchServer().running() as fake:
        blocks = [block("evict"), block("full"), block("evict", 1, first=False, last=True)]
        trials = await turns(fake, branching, *blocks)
    assert [sorted({call.call.run for call in trial.calls}) for trial in trials] == [
        [0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7]
    ]  # fmt: skip
    assert {run for run, _ in trials[0].cold} == {run for run, _ in trials[2].again} == {0}
    assert {call.call.run for call in trials[2].trace.calls} == {0}


async def test_turn_has_every_agent_computed_once_before_hits_are_compared(branching):
    with BenchServer().running() as fake:
        [trial] = await turns(fake, branching, block())
    before_second_round = fake.steps[2 : 2 + 5]
    assert sorted(before_second_round) == [
        "call likewise", "call often", "call seldom", "call start-here", "call start-here"
    ]  # fmt: skip
    assert not trial.failure


async def test_turn_measures_no_first_call_of_an_agent(branching):
    for repeat in range(4):
        with BenchServer().running() as fake:
            [trial] = await turns(fake, branching, block(repeat=repeat, first=repeat == 0))
        assert {call.answer.cached_tokens >= 100 for call in trial.calls} == {True}


async def test_turn_whose_runs_make_no_call_fails_and_says_so(tmp_path):
    agents = {
        "a": {"fixed_tokens": 20, "after": {"agent": "start", "p": 1e-9}},
        "b": {"fixed_tokens": 20, "after": ["start", "a"]},
    }
    loaded = make_recipe(tmp_path, agents)
    never = Setting(name="flow", served=loaded, driven=loaded, runs=2, concurrency=1)
    with BenchServer().running() as fake:
        [trial] = await turns(fake, never, block())
    assert not trial.whole
    assert trial.failure == "its runs made no call: flow ended them at their start"


async def test_turn_ends_with_its_first_call_that_fails(setting):
    calls = []

    def fails(seen):
        calls.append(seen)
        return 500 if len(calls) == 6 + 1 else None

    with BenchServer(fault=fails).running() as fake:
        await turns(fake, setting, block())
    assert len(calls) == 6 + 1


async def test_turn_whose_call_fails_names_it_and_keeps_what_was_measured(setting):
    calls = []

    def third_measured(seen):
        calls.append(seen)
        return 500 if len(calls) == 6 + 3 else None

    with BenchServer(fault=third_measured).running() as fake:
        [trial] = await turns(fake, setting, block())
    assert trial.failure.startswith("call 1.0 (a)")
    assert not trial.whole
    assert [call.state for call in trial.calls] == [CallState.DONE] * 2 + [CallState.FAILED]


@pytest.mark.parametrize("kept", [4 + 2, 4 + 2 + 2], ids=["trace", "replay"])
async def test_turn_whose_call_after_the_measured_runs_fails_is_whole_and_says_so(setting, kept):
    calls = []

    def fails(seen):
        calls.append(seen)
        return 500 if len(calls) == 6 + kept else None

    with BenchServer(fault=fails).running() as fake:
        [trial] = await turns(fake, setting, block(last=True))
    assert trial.whole
    assert "HTTP 500" in trial.failure
    assert [call.state for call in trial.calls] == [CallState.DONE] * 4
    assert trial.counts["prefetches"] == 4


async def test_turn_that_is_the_last_traces_one_more_run_that_is_not_measured(setting):
    with BenchServer().running() as fake:
        first, last = await turns(fake, setting, block(), block(repeat=1, first=False, last=True))
    assert first.trace is None
    assert [call.call.agent for call in last.trace.calls] == ["a", "b"]
    assert not {call.run for call in last.trace.calls} & {call.run for call in last.calls}
    assert {look.loads for look in last.trace.looks} == {True}
    seen = [(copy.start_s, copy.end_s) for copy in last.trace.copies]
    assert seen == list(pairwise(look.at_s for look in last.trace.looks))


async def test_turn_traces_calls_in_seconds_since_it_was_looked_at(setting, monkeypatch):
    stock = Server.vocabulary

    async def slow(server):
        await asyncio.sleep(0.1)
        return await stock(server)

    monkeypatch.setattr(Server, "vocabulary", slow)
    with BenchServer().running() as fake:
        [trial] = await turns(fake, setting, block(last=True))
    assert trial.trace.calls[0].started_s >= 0.1  # since before prompts were made


async def test_turn_of_stock_sglang_is_traced_without_looks(setting):
    with BenchServer(mode=None).running() as fake:
        [trial] = await turns(fake, setting, block("hicache", last=True))
    assert len(trial.trace.calls) == 2
    assert (trial.trace.looks, trial.trace.copies) == ([], None)


async def test_turn_on_a_server_that_hangs_says_which_call_waited(setting):
    with BenchServer(fault=lambda seen: "hang").running() as fake:
        [trial] = await turns(fake, setting, block(), timeout_s=2.0)
    assert trial.failure.startswith("call 0.0 (a): no answer")


async def test_turn_on_a_server_that_is_gone_says_so(setting):
    [trial] = await turns(BenchServer(url="http://127.0.0.1:9"), setting, block())
    assert "cannot reach http://127.0.0.1:9" in trial.failure


class Dead:
    """A server process that has ended by itself."""

    def wait(self, timeout_s: float) -> bool:
        return True

    def failure(self) -> KvflowError:
        return KvflowError("SGLang has ended (ended by SIGKILL)")


async def test_turn_on_a_server_that_died_says_which_call_it_was_and_how_it_ended(setting):
    with BenchServer(fault=lambda seen: "drop").running() as fake:
        station = Station(fake.url, server=Dead())
        trial = await take_turn(setting, block(), station, Access())
    assert trial.failure.startswith("call 0.0 (a)")
    assert trial.failure.endswith("SGLang has ended (ended by SIGKILL)")
    assert station.holds is None


@pytest.mark.parametrize(
    ("error", "told"),
    [(ValueError("no  number"), "ValueError: no number"), (RuntimeError(), "RuntimeError")],
)
async def test_turn_that_fails_in_a_way_nobody_foresaw_says_how_and_keeps_what_was_measured(
    setting, monkeypatch, error, told
):
    counts = iter([None, error])

    async def next_count(_):
        if found := next(counts):
            raise found

    monkeypatch.setattr(Control, "counts", next_count)
    with BenchServer().running() as fake:
        [trial] = await turns(fake, setting, block())
    assert trial.failure == told
    assert len(trial.calls) == 4


class Running:
    """A server process of the bench."""

    def __init__(self, device):
        self.launch = SimpleNamespace(port=1, device=device, env={})


@pytest.mark.parametrize(("device", "opened"), [("cpu", 0), ("cuda", 1)])
async def test_turn_watches_gpus_only_where_the_server_runs_on_one(
    setting, monkeypatch, device, opened
):
    asked = []
    monkeypatch.setattr(measure, "open_gpus", lambda: asked.append(1) or NoGpus("none"))
    with BenchServer().running() as fake:
        station = Station(fake.url, server=Running(device))
        trial = await take_turn(setting, block(), station, Access())
    assert not trial.failure
    assert len(asked) == opened


async def test_turn_after_a_failed_one_begins_anew(setting):
    faults = iter([500])
    with BenchServer(fault=lambda seen: next(faults, None)).running() as fake:
        failed, good = await turns(fake, setting, block(), block(repeat=1))
    assert failed.failure
    assert (good.failure, good.warm_rounds, fake.steps.count("flush")) == ("", 3, 2)


async def test_turn_beside_plain_chats_measures_them_too_and_warms_the_cache_beside_some(
    setting, monkeypatch
):
    from kvflow.bench import plain

    monkeypatch.setattr(plain, "_PAUSE_S", 0)
    with BenchServer().running() as fake:
        [trial] = await turns(fake, replace(setting, runs=8, plain_lanes=2), block())
    assert not trial.failure
    assert len(trial.plain) > 1
    alike, rounds = fake.steps[2:4], fake.steps[4:]
    assert alike == ["call a", "call b"]  # whose answers are compared with others
    calls = [at for at, step in enumerate(rounds) if step != "plain"]
    assert "plain" in rounds[: calls[2 * (trial.warm_rounds - 1)]]


async def test_turn_whose_plain_chats_fail_while_the_cache_is_warmed_fails(setting, monkeypatch):
    from kvflow.bench import plain

    monkeypatch.setattr(plain, "_PAUSE_S", 0)

    def fails(seen):
        return None if seen.params.get("kvflow") else 500

    with BenchServer(fault=fails).running() as fake:
        [trial] = await turns(fake, replace(setting, plain_lanes=1), block())
    assert "plain chat flow/full/0/warm-1/0" in trial.failure
    assert not trial.calls


async def test_turn_that_is_cancelled_ends_at_once(setting):
    loop, asked = asyncio.get_running_loop(), asyncio.Event()

    def hang(seen):
        loop.call_soon_threadsafe(asked.set)
        return "hang"

    with BenchServer(fault=hang).running() as fake:
        task = asyncio.create_task(turns(fake, setting, block()))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
