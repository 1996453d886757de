"""What holds for the whole test run, and how two workers share it."""

import ctypes
import gc
import sys

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# How long an example takes tells of the machine, and of who else is at work on it. The examples are
# the same in every run; `pytest --hypothesis-profile explore` draws others.
settings.register_profile(
    "explore", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("any", settings.get_profile("explore"), derandomize=True)
settings.load_profile("any")


class _ByFile(LoadScopeScheduling):
    """A worker takes a file, and one of them all that start real servers: they share these."""

    def _split_scope(self, nodeid: str) -> str:
        return "real servers" if _has_servers(nodeid) else nodeid.split("::", 1)[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """How two workers share the tests."""
    return _ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the largest first, so that no worker is left with one of them at the end."""
    items.sort(key=lambda item: (not _has_servers(item.nodeid), "/engine/" not in item.nodeid))


def _has_servers(nodeid: str) -> bool:
    return "/test_real.py::" in nodeid or "/engine/server/" in nodeid


def pytest_collection_finish() -> None:
    """Let no collection of garbage go through SGLang and torch again, a million objects."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let Python end as it should after tests that load tokenizers.

    The sentencepiece that SGLang brings frees SWIG's type table after the type that it needs for
    that is gone, if modules happen to be freed in this order: a crash after the last test. A table
    that is still referred to is not freed.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("swig_runtime_data"):
            for table in vars(module).values():
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(table))
