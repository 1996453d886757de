import asyncio
import threading
import time
from collections import Counter
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.drives import SEQUENCE, agents, driven, first, settings, user_text
from support.fake_server import ANSWER, PATIENCE_S, FakeServer, Seen, to_ids
from support.recipes import make_recipe

from kvflow.client.drive import drive
from kvflow.client.records import CallRecord, CallState, Ledger, RunRecord
from kvflow.client.server import connect
from kvflow.errors import UsageError


async def test_drive_makes_every_call_of_a_sequence_in_order(tmp_path: Path) -> None:
    fake = FakeServer()
    result = await driven(fake, make_recipe(tmp_path, SEQUENCE))
    assert agents(fake) == ["planner", "executor", "reviewer"]
    assert [record.state for record in result.calls] == [CallState.DONE] * 3
    assert [run.ok for run in result.runs] == [True]


async def test_drive_sends_the_system_prompt_and_what_the_predecessor_said(tmp_path: Path) -> None:
    fake = FakeServer()
    loaded = make_recipe(tmp_path, SEQUENCE, workload={"dynamic_tokens": 200})
    await driven(fake, loaded)
    assert fake.seen[1].body["messages"] == [
        {"role": "system", "content": "You are executor."},
        {"role": "user", "content": f"planner: {ANSWER}"},
    ]


async def test_drive_tags_calls_and_marks_the_last_as_final(tmp_path: Path) -> None:
    fake = FakeServer()
    result = await driven(fake, make_recipe(tmp_path, SEQUENCE), client="my-app")
    tags = [seen.params["kvflow"] for seen in fake.seen]
    names = {(tag["client"], tag["workflow"], tag["run"]) for tag in tags}
    assert names == {("my-app", "flow", result.runs[0].run)}
    assert [tag.get("final", False) for tag in tags] == [False, False, True]


async def test_drive_twice_gives_runs_other_ids(tmp_path: Path) -> None:
    loaded = make_recipe(tmp_path, SEQUENCE)
    one, two = [await driven(FakeServer(), loaded, runs=2) for _ in range(2)]
    assert len({run.run for run in (*one.runs, *two.runs)}) == 4


async def test_drive_makes_a_fan_out_at_the_same_time(tmp_path: Path) -> None:
    # The calls are answered only when all three have come.
    fake = FakeServer(meet=threading.Barrier(3))
    result = await driven(fake, make_recipe(tmp_path, {"worker": {"fan_out": 3}}))
    assert not result.failures
    assert agents(fake) == ["worker"] * 3


async def test_drive_barrier_hears_every_part(tmp_path: Path) -> None:
    fake = FakeServer()
    parts: dict[str, dict[str, object]] = {"a": {}, "b": {}, "c": {"after": ["a", "b"]}}
    await driven(fake, make_recipe(tmp_path, parts, workload={"dynamic_tokens": 200}))
    assert user_text(fake.seen[-1]) == f"a: {ANSWER}\n\nb: {ANSWER}"


async def test_drive_branch_goes_on_with_the_first_part(tmp_path: Path) -> None:
    fake = FakeServer(fault=lambda seen: "hang" if seen.agent == "slow" else None)
    agents_of: dict[str, dict[str, object]] = {
        "slow": {}, "quick": {}, "next": {"after": {"any": ["slow", "quick"]}}
    }  # fmt: skip
    loaded = make_recipe(tmp_path, agents_of, workload={"dynamic_tokens": 200})

    class Releases(Ledger):
        def call_changed(self, record: CallRecord) -> None:
            if (record.call.agent, record.state) == ("next", CallState.DONE):
                fake.release.set()

    result = await driven(fake, loaded, Releases())
    assert user_text(fake.seen[-1]) == f"quick: {ANSWER}"
    assert [record.call.agent for record in result.failures] == ["slow"]


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_drive_keeps_so_many_runs_in_flight_and_no_more(
    tmp_path: Path, concurrency: int
) -> None:
    in_flight: set[str] = set()
    most = 0

    class Watch(Ledger):
        def call_changed(self, record: CallRecord) -> None:
            nonlocal most
            in_flight.add(record.run)
            most = max(most, len(in_flight))

        def run_ended(self, record: RunRecord) -> None:
            in_flight.remove(record.run)

    fake = FakeServer()
    loaded = make_recipe(tmp_path, SEQUENCE)
    result = await driven(fake, loaded, Watch(), runs=6, concurrency=concurrency)
    assert most == concurrency
    assert sorted(run.index for run in result.runs) == list(range(6))


@pytest.mark.parametrize("begin", [-4, 3])
async def test_drive_begins_with_the_run_that_it_is_told_to(tmp_path: Path, begin: int) -> None:
    loaded = make_recipe(tmp_path, SEQUENCE)
    whole = await driven(FakeServer(), loaded, runs=8, first_run=begin)
    part = await driven(FakeServer(), loaded, runs=2, first_run=begin + 2)
    assert [run.index for run in part.runs] == [begin + 2, begin + 3]
    assert [one.call for one in part.calls] == [one.call for one in whole.calls[6:12]]


async def test_drive_counts_times_from_when_it_is_told_to(tmp_path: Path) -> None:
    loaded = make_recipe(tmp_path, {"only": {}})
    began = time.perf_counter() - 100
    with FakeServer().running() as fake:
        async with connect(fake.url) as server:
            result = await drive(loaded, server, settings(), began=began)
    assert [100 <= record.started_s < 120 for record in result.calls] == [True]


async def test_drive_observer_sees_every_state_of_a_call_in_order(tmp_path: Path) -> None:
    states = []

    class Watch(Ledger):
        def call_changed(self, record: CallRecord) -> None:
            states.append(record.state)

    await driven(FakeServer(), make_recipe(tmp_path, {"only": {}}), Watch())
    assert states == [CallState.WAITING, CallState.PREFILL, CallState.DECODING, CallState.DONE]


async def test_drive_conversation_extends_the_last_prompt_and_answer(tmp_path: Path) -> None:
    fake = FakeServer()
    loop = {"any": ["start", "user"]}
    talk: dict[str, dict[str, object]] = {
        "bot": {"after": loop, "memory": "conversation"}, "user": {"after": "bot"}
    }  # fmt: skip
    loaded = make_recipe(tmp_path, talk, repeat=True, workload={"max_calls": 3})
    await driven(fake, loaded)
    before, _, now = (seen.body["messages"] for seen in fake.seen)
    assert now[:3] == [*before, {"role": "assistant", "content": ANSWER}]
    assert len(now) == 4


async def test_drive_conversation_in_ids_extends_the_last_prompt_and_answer(
    tmp_path: Path,
) -> None:
    fake = FakeServer()
    bot: dict[str, object] = {
        "fixed_tokens": 20, "after": {"any": ["start", "bot"]}, "memory": "conversation"
    }  # fmt: skip
    loaded = make_recipe(tmp_path, {"bot": bot}, repeat=True, workload={"max_calls": 2})
    await driven(fake, loaded)
    before, now = (seen.body["input_ids"] for seen in fake.seen)
    assert now[: len(before) + len(ANSWER)] == before + to_ids(ANSWER)


async def test_drive_agents_in_ids_share_a_fixed_part_that_the_tag_measures(
    tmp_path: Path,
) -> None:
    fake = FakeServer()
    loaded = make_recipe(tmp_path, {"a": {"fixed_tokens": 30}}, workload={"dynamic_tokens": 9})
    await driven(fake, loaded, runs=2)
    one, two = (seen.body["input_ids"] for seen in fake.seen)
    assert len(one) == len(two) == 39
    assert one[:30] == two[:30]
    assert one[30:] != two[30:]
    assert fake.seen[0].params["kvflow"]["fixed_tokens"] == 30


async def test_drive_with_filler_and_exact_lengths_has_the_lengths_of_the_plan(
    tmp_path: Path,
) -> None:
    fake = FakeServer()
    loaded = make_recipe(tmp_path, {**SEQUENCE, "synthetic": {"fixed_tokens": 30}})
    result = await driven(fake, loaded, filler="lru", exact=True)
    for record in result.calls:
        assert record.answer is not None
        assert record.answer.output_tokens == record.call.output_tokens
    assert {len(user_text(seen).encode()) for seen in fake.seen if "messages" in seen.body} == {32}


async def test_drive_arms_with_one_seed_walk_the_same_path_with_other_filler(
    tmp_path: Path,
) -> None:
    again = {"any": ["start", {"agent": "reviewer", "p": 0.5}]}
    loop: dict[str, dict[str, object]] = {
        "planner": {"after": again, "fan_out": "1..3"}, "reviewer": {"after": "planner"}
    }  # fmt: skip
    loaded = make_recipe(tmp_path, loop, workload={"dynamic_tokens": "20..90"})
    arms = {}
    for arm in ("lru", "hicache"):
        fake = FakeServer()
        result = await driven(fake, loaded, filler=arm, runs=4, concurrency=4)
        path = Counter((record.call, record.state) for record in result.calls)
        arms[arm] = (path, {user_text(seen) for seen in fake.seen})
    assert arms["lru"][0] == arms["hicache"][0]
    assert not arms["lru"][1] & arms["hicache"][1]


@pytest.mark.parametrize("fault", [500, "cut", "garbage"])
async def test_drive_a_failed_call_ends_its_run_and_the_others_go_on(
    tmp_path: Path, fault: int | str
) -> None:
    fake = FakeServer(fault=first("executor", fault))
    result = await driven(fake, make_recipe(tmp_path, SEQUENCE), runs=3)
    (failure,) = result.failures
    assert failure.error.startswith("call 0.1 (executor)")
    assert [run.ok for run in result.runs] == [False, True, True]
    assert Counter(record.call.agent for record in result.calls) == {
        "planner": 3, "executor": 3, "reviewer": 2
    }  # fmt: skip


async def test_drive_that_is_to_stop_at_a_failure_begins_no_run_after_it(tmp_path: Path) -> None:
    fake = FakeServer(fault=first("executor", 500))
    loaded = make_recipe(tmp_path, SEQUENCE)
    result = await driven(fake, loaded, runs=6, stop_at_failure=True)
    assert [run.ok for run in result.runs] == [False]


async def test_drive_that_is_to_stop_at_a_failure_lets_runs_in_flight_end(tmp_path: Path) -> None:
    both, failed, order = threading.Event(), threading.Event(), count()

    def fault(seen: Seen) -> int | None:
        if next(order) == 0:
            both.wait(PATIENCE_S)
            return 500
        both.set()
        failed.wait(PATIENCE_S)
        return None

    class Watch(Ledger):
        def run_ended(self, record: RunRecord) -> None:
            if not record.ok:
                failed.set()

    fake = FakeServer(fault=fault)
    loaded = make_recipe(tmp_path, {"planner": {}})
    result = await driven(fake, loaded, Watch(), runs=6, concurrency=2, stop_at_failure=True)
    assert [run.ok for run in result.runs] == [False, True]


async def test_drive_a_failed_call_keeps_what_its_siblings_measure(tmp_path: Path) -> None:
    fake = FakeServer(fault=first("a", 500), meet=threading.Barrier(2))
    result = await driven(fake, make_recipe(tmp_path, {"a": {}, "b": {}}))
    states = {record.call.agent: record.state for record in result.calls}
    assert states == {"a": CallState.FAILED, "b": CallState.DONE}


async def test_drive_a_server_that_goes_away_fails_the_rest_and_keeps_the_first(
    tmp_path: Path,
) -> None:
    fake = FakeServer()
    with ExitStack() as until_it_goes:
        until_it_goes.enter_context(fake.running())

        class Ends(Ledger):
            def run_ended(self, record: RunRecord) -> None:
                until_it_goes.close()

        async with connect(fake.url) as server:
            loaded = make_recipe(tmp_path, SEQUENCE)
            result = await drive(loaded, server, settings(runs=3), [Ends()])
    assert [run.ok for run in result.runs] == [True, False, False]
    assert all("cannot reach" in failure.error for failure in result.failures)
    assert len(result.failures) == 2


async def test_drive_cancelled_leaves_what_was_measured_with_its_observer(tmp_path: Path) -> None:
    fake = FakeServer(fault=lambda seen: "hang" if seen.agent == "reviewer" else None)
    sent = asyncio.Event()

    class Watch(Ledger):
        def call_changed(self, record: CallRecord) -> None:
            super().call_changed(record)
            if (record.call.agent, record.state) == ("reviewer", CallState.PREFILL):
                sent.set()

    ledger = Watch()
    with fake.running():
        async with connect(fake.url) as server:
            loaded = make_recipe(tmp_path, SEQUENCE)
            driving = asyncio.create_task(drive(loaded, server, settings(runs=2), [ledger]))
            await sent.wait()
            driving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await driving
    assert [(record.call.agent, record.error) for record in ledger.calls] == [
        ("planner", ""),
        ("executor", ""),
        ("reviewer", "interrupted"),
    ]
    assert [run.ok for run in ledger.runs] == [False]


@pytest.mark.parametrize(
    ("agents_of", "changes", "words"),
    [
        ({"a": {}, "b": {"fixed_tokens": 9, "after": "a"}}, {}, "prompt file.*: b"),
        ({"a": {}}, {"exact": True}, "exact output lengths"),
    ],
    ids=["ids", "exact"],
)
async def test_drive_another_server_with_what_only_sglang_has_is_refused_before_any_call(
    tmp_path: Path, agents_of: dict[str, dict[str, object]], changes: dict[str, Any], words: str
) -> None:
    fake = FakeServer("openai")
    with pytest.raises(UsageError, match=words):
        await driven(fake, make_recipe(tmp_path, agents_of), **changes)
    assert fake.seen == []


async def test_drive_another_server_makes_every_call(tmp_path: Path) -> None:
    result = await driven(FakeServer("openai"), make_recipe(tmp_path, SEQUENCE), runs=2)
    assert [run.ok for run in result.runs] == [True, True]
