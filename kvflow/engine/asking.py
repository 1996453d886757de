"""From SGLang's HTTP process to its schedulers and back, through SGLang's own communicator."""

import asyncio
import json
from operator import attrgetter
from typing import Any

from kvflow.engine import ipc
from kvflow.engine.http_errors import ControlError
from kvflow.engine.plugin import BACKEND

_ANSWER_SECONDS = 10.0


async def ask(op: str, body: dict[str, Any]) -> str:
    """Ask every rank of every replica; the answer of one replica, always the same, as JSON text.

    Replicas answer in any order, and each has a tree and counters of its own: what comes from now
    one and now another of them can be put together to nothing.

    Raises:
        ControlError: 404 without kvflow's cache, 400 for what a scheduler refuses, 504 when none
            answers.
    """
    manager = _manager()
    if manager.server_args.radix_cache_backend != BACKEND:
        raise ControlError(
            404,
            "this server runs without kvflow's cache",
            hint="start it with kvflow serve, or with --radix-cache-backend kvflow",
        )
    message = ipc.KvflowReq(op=op, body=json.dumps(body))
    try:
        answers = await asyncio.wait_for(_answers(manager, message), _ANSWER_SECONDS)
    except TimeoutError as error:
        raise ControlError(
            504, "the scheduler does not answer", f"within {_ANSWER_SECONDS:g} s"
        ) from error
    for answer in answers:
        if answer.error:
            raise ControlError(400, answer.error, answer.why, answer.hint)
    return str(min(answers, key=attrgetter("replica")).body)


async def _answers(manager: Any, message: ipc.KvflowReq) -> Any:
    """What every rank answers.

    SGLang hands an answer to whoever asks at that moment. So a question that was sent is waited for
    until it is answered, even if whoever asked it has given up, and no other is sent meanwhile.
    """
    manager.auto_create_handle_loop()
    turn: asyncio.Lock = vars(manager).setdefault("_kvflow_turn", asyncio.Lock())
    await turn.acquire()
    asked = asyncio.ensure_future(getattr(manager, f"{ipc.NAME}_communicator")(message))
    asked.add_done_callback(lambda _: turn.release())
    return await asyncio.shield(asked)


def _manager() -> Any:
    """SGLang's TokenizerManager."""
    from sglang.srt.entrypoints.http_server import get_global_state

    return get_global_state().tokenizer_manager
