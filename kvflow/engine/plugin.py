"""The door through which SGLang finds kvflow (entry point `sglang.srt.plugins` in pyproject.toml).

It is called in every SGLang process on a machine where kvflow is installed, so it is light, and
what it does is seen by nobody who has not asked for `--radix-cache-backend kvflow`: a scheduler
gets one more name in two registries; the HTTP process gets routes only when it was asked for.
"""

import multiprocessing
import os
import sys

from kvflow.engine.settings import VARIABLE

BACKEND = "kvflow"


def register() -> None:
    """Make the backend known where it belongs. Safe to call again."""
    if "sglang.srt.managers.scheduler" in sys.modules:
        register_backend()
    if multiprocessing.parent_process() is None and _asked_for():
        from kvflow.engine import http

        http.install()


def _asked_for() -> bool:
    """Whether this server was asked for kvflow, as far as its start tells.

    A server that is told so by SGLang's own --config file alone shows neither, and then works
    without routes unless KVFLOW_CONFIG is set.
    """
    named = any(word == BACKEND or word.endswith(f"={BACKEND}") for word in sys.argv)
    return named or VARIABLE in os.environ


def register_backend() -> None:
    """Put the cache and its tree core into SGLang's registries, once."""
    from sglang.srt.mem_cache import registry
    from sglang.srt.mem_cache.unified_cache import tree_core_registry

    from kvflow.engine import factory

    if registry.get_radix_cache_factory(BACKEND) is None:
        registry.register_radix_cache_backend(BACKEND, factory.build_cache)
    if tree_core_registry.get_tree_core_factory(BACKEND) is None:
        tree_core_registry.register_tree_core_backend(BACKEND, factory.build_tree)
