"""What holds for the whole test run."""

import ctypes
import gc
import sys

from hypothesis import HealthCheck, settings

# How long an example takes tells of the machine, and of who else is at work on it. The examples are
# the same in every run; `pytest --hypothesis-profile explore` draws others.
settings.register_profile(
    "explore", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("any", settings.get_profile("explore"), derandomize=True)
settings.load_profile("any")


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
