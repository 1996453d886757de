"""The message between SGLang's HTTP process and its schedulers that carries kvflow's control plane.

The body is JSON in a string: SGLang's message types are flat, and a nested map that does not
decode would end the scheduler.
"""

from sglang.srt.managers.io_struct import BaseReq

NAME = "kvflow_control"
"""Prefix of the communicator that SGLang makes for it."""


class KvflowReq(BaseReq, kw_only=True):  # type: ignore[call-arg]
    """What a scheduler is asked: `op` and its JSON arguments."""

    op: str
    body: str = "{}"


class KvflowReqOutput(BaseReq, kw_only=True):  # type: ignore[call-arg]
    """What it answers: a JSON document, or what is wrong, why, and what to do.

    `replica` tells the scheduler processes that answer apart.
    """

    replica: str = ""
    body: str = "{}"
    error: str = ""
    why: str = ""
    hint: str = ""


def install() -> None:
    """Make SGLang's HTTP process know both. Once, before its tokenizer manager is built."""
    from sglang.srt.managers import io_struct, tokenizer_control_mixin

    io_struct.hook_custom_types(KvflowReq, KvflowReqOutput)
    specs = tokenizer_control_mixin._COMMUNICATOR_SPECS
    if not any(spec[0] == NAME for spec in specs):
        specs.append((NAME, KvflowReqOutput))
