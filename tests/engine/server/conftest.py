"""Two real servers for the tests of this folder, each started once if any test asks for it.

Tests share what a server keeps beyond a flush: runs, prompts and counters. So each file speaks as a
client of its own, with prompts of its own.
"""

import contextlib
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from support.real_server import RealServer, Starting
from support.server_kinds import server_kinds

_STARTING = pytest.StashKey[Starting]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First what has servers of its own, then all that leaves time for a start, then these."""
    here = Path(__file__).parent
    items.sort(key=lambda item: (here in item.path.parents) - _is_large(item.path))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Keep the servers for as long as there are tests."""
    asked = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    with contextlib.ExitStack() as stack:
        if "servers" in asked:
            session.config.pluginmanager.register(_Starter(session.stash, asked, stack))
        return (yield)


class _Starter:
    """Starts servers beside the first test that leaves a core and memory for them."""

    def __init__(self, stash: pytest.Stash, asked: set[str], stack: contextlib.ExitStack) -> None:
        self._stash, self._asked, self._stack = stash, asked, stack

    def pytest_runtest_logstart(self, location: tuple[str, int | None, str]) -> None:
        if _STARTING in self._stash or _is_large(Path(location[0])):
            return
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        kinds = {name: kind for name, kind in server_kinds(folder).items() if name in self._asked}
        self._stash[_STARTING] = self._stack.enter_context(Starting(folder, kinds))


def _is_large(test: Path) -> bool:
    """Whether a file's tests have real servers of their own."""
    return test.name == "test_real.py"


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest) -> dict[str, RealServer]:
    """The servers that the tests of this run ask for."""
    return request.session.stash[_STARTING].ready()


@pytest.fixture(scope="session")
def stock_server(servers: dict[str, RealServer]) -> RealServer:
    return servers["stock_server"]


@pytest.fixture(scope="session")
def plugin_server(servers: dict[str, RealServer]) -> RealServer:
    return servers["plugin_server"]
