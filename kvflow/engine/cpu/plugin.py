"""The doors through which SGLang finds the CPU engine (entry points in pyproject.toml).

Both are called in every SGLang process on this machine, so they are light, and do nothing unless
KVFLOW_DEVICE=cpu.
"""

import os
import sys


def _wanted() -> bool:
    return os.environ.get("KVFLOW_DEVICE") == "cpu"


def activate() -> str | None:
    """Entry point `sglang.srt.platforms`: the platform class, or None when not asked for."""
    return "kvflow.engine.cpu.platform:CpuEngine" if _wanted() else None


def register() -> None:
    """Entry point `sglang.srt.plugins`: prepare a scheduler process for the CPU.

    The HTTP server and the detokenizer touch no KV and stay as they are.
    """
    if not _wanted() or "sglang.srt.managers.scheduler" not in sys.modules:
        return
    from kvflow.engine.cpu import attention, link, shims, streams

    streams.install()
    shims.install(link.from_environment())
    attention.install()
