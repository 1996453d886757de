"""Plain chats beside a workflow: no tag, a history that grows, a pause before each turn."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kvflow.client.exchange import Answer, IdsPrompt
from kvflow.client.server import Server
from kvflow.errors import KvflowError
from kvflow.workload import filler_ids

_TURNS = 4  # of one chat
_TURN_TOKENS = 64
_OUTPUT_TOKENS = 16
_PAUSE_S = 0.25  # somebody reads and types


@dataclass(slots=True)
class PlainTraffic:
    """What plain chats got.

    Attributes:
        answers: to every turn that was answered.
        errors: one line for each turn that was not.
    """

    answers: list[Answer] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@asynccontextmanager
async def chatting(
    server: Server, lanes: int, name: str, vocabulary: range
) -> AsyncIterator[PlainTraffic]:
    """Keep some chats going for as long as the context lasts.

    Args:
        server: to chat with.
        lanes: chats at once.
        name: other chats for another name.
        vocabulary: token ids to draw from; may be empty without lanes.
    """
    traffic = PlainTraffic()
    tasks = [
        asyncio.create_task(_lane(server, traffic, f"{name}/{lane}", vocabulary))
        for lane in range(lanes)
    ]
    try:
        yield traffic
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _lane(server: Server, traffic: PlainTraffic, name: str, vocabulary: range) -> None:
    """One chat after another; a lane ends with the first turn that fails."""
    turn = 0
    history: tuple[int, ...] = ()
    while not traffic.errors:
        if turn % _TURNS == 0:
            history = ()
        said = filler_ids(_TURN_TOKENS, vocabulary, "plain", name, turn)
        await asyncio.sleep(_PAUSE_S)
        prompt = IdsPrompt((*history, *said))
        what = f"turn {turn} of the plain chat {name}"
        try:
            answer = await server.ask(prompt, max_tokens=_OUTPUT_TOKENS, what=what, exact=True)
        except KvflowError as error:
            traffic.errors.append(error.what)
            return
        traffic.answers.append(answer)
        history = prompt.ids + (answer.output_ids or ())
        turn += 1
