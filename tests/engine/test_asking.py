"""Questions to the scheduler, through SGLang's own communicator."""

import asyncio
from types import SimpleNamespace

import msgspec
import pytest
import support.engine  # noqa: F401 - before SGLang
from sglang.srt.managers.communicator import FanOutCommunicator
from support.prefixes import scheduler as scheduler_of_prefixes

from kvflow.engine import asking, http
from kvflow.engine.asking import ask
from kvflow.engine.http_errors import ControlError
from kvflow.engine.ipc import KvflowReqOutput
from kvflow.engine.metrics import Collector
from kvflow.engine.metrics_sample import take
from kvflow.engine.plugin import BACKEND

pytestmark = pytest.mark.engine


class Scheduler:
    """Answers when it is told to, in the order in which it was asked.

    Attributes:
        asked: the questions that have come.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, replicas: int = 1) -> None:
        self.asked: list[str] = []
        self._communicator = FanOutCommunicator(
            lambda message: self.asked.append(message.op), replicas
        )
        manager = SimpleNamespace(
            server_args=SimpleNamespace(radix_cache_backend=BACKEND),
            auto_create_handle_loop=lambda: None,
            kvflow_control_communicator=self._communicator,
        )
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(asking, "_manager", lambda: manager)

    def questions_wait(self, seconds: float) -> None:
        """For how long those wait that are asked from now on."""
        self._monkeypatch.setattr(asking, "_ANSWER_SECONDS", seconds)

    async def answer(self, body: str, replica: str = "") -> None:
        self._communicator.handle_recv(KvflowReqOutput(body=body, replica=replica))
        await asyncio.sleep(0.01)


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    return Scheduler(monkeypatch)


async def begin(op: str) -> "asyncio.Task[str]":
    task = asyncio.create_task(ask(op, {}))
    await asyncio.sleep(0.01)
    return task


async def test_question_is_answered(scheduler):
    question = await begin("tick")
    await scheduler.answer('"yes"')
    assert await question == '"yes"'


async def test_answer_is_that_of_the_same_replica_whichever_comes_first(monkeypatch):
    replicas = Scheduler(monkeypatch, replicas=3)
    for order in ("bca", "cab"):
        question = await begin("follow")
        for replica in order:
            await replicas.answer(f'"{replica}"', replica)
        assert await question == '"a"'


async def test_question_that_nobody_answers_ends_in_time(scheduler):
    scheduler.questions_wait(0.05)
    with pytest.raises(ControlError) as raised:
        await ask("tick", {})
    assert raised.value.status == 504


@pytest.mark.parametrize("how", ["it took too long", "the client went away"])
async def test_answer_that_comes_late_is_not_taken_for_that_to_the_next_question(scheduler, how):
    scheduler.questions_wait(0.05)
    first = await begin("serve")
    scheduler.questions_wait(60.0)
    if how == "the client went away":
        first.cancel()
    await asyncio.wait([first])
    second = await begin("tick")
    await scheduler.answer('"served"')
    await scheduler.answer('"ticked"')
    assert scheduler.asked == ["serve", "tick"]
    assert await second == '"ticked"'


async def test_question_that_was_given_up_before_its_turn_is_never_sent(scheduler):
    scheduler.questions_wait(0.05)
    for op in ("serve", "tick"):
        with pytest.raises(ControlError):
            await ask(op, {})
    await scheduler.answer('"served"')
    assert scheduler.asked == ["serve"]
    scheduler.questions_wait(60.0)
    third = await begin("follow")
    await scheduler.answer('"followed"')
    assert await third == '"followed"'


async def test_tick_that_is_answered_with_nonsense_is_followed_by_others(monkeypatch, caplog):
    told = iter(["{}", "[]", "null"])
    asked: list[str] = []
    enough = asyncio.Event()

    async def nonsense(op: str, body: object) -> str:
        asked.append(op)
        if len(asked) == 5:
            enough.set()
        return next(told, "{}")

    monkeypatch.setattr(http, "ask", nonsense)
    monkeypatch.setattr(http, "_TICK_SECONDS", 0.001)
    ticks = asyncio.create_task(http._ticks(Collector()))
    await asyncio.wait_for(enough.wait(), 30)
    ticks.cancel()
    assert len(caplog.records) == 1


async def test_metrics_show_nothing_of_a_scheduler_that_does_not_answer(monkeypatch):
    answers = iter([msgspec.json.encode(take(scheduler_of_prefixes())).decode()])
    shown: list[bool] = []
    enough = asyncio.Event()
    collector = Collector()

    async def once(op: str, body: object) -> str:
        shown.append(collector.sample is not None)
        if len(shown) == 4:
            enough.set()
        try:
            return next(answers)
        except StopIteration:
            raise ControlError(504, "the scheduler does not answer") from None

    monkeypatch.setattr(http, "ask", once)
    monkeypatch.setattr(http, "_TICK_SECONDS", 0.001)
    ticks = asyncio.create_task(http._ticks(collector))
    await asyncio.wait_for(enough.wait(), 30)
    ticks.cancel()
    assert shown == [False, True, False, False]
