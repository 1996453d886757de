"""Two real servers for the tests of this folder, each started once if any test asks for it.

Tests share what a server keeps beyond a flush: runs, prompts and counters. So each file speaks as a
client of its own, with prompts of its own.
"""

import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from support.real_server import RealServer, Starting
from support.server_kinds import server_kinds

_STARTING = pytest.StashKey[Starting]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """These tests come last: what is torn down after the last test is up for them alone."""
    items.sort(key=lambda item: Path(__file__).parent in item.path.parents)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Start the servers before the first test of all, which seldom needs more than one core."""
    asked = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if session.config.option.collectonly or session.testsfailed or "servers" not in asked:
        return (yield)
    with tempfile.TemporaryDirectory() as name:
        kinds = server_kinds(Path(name))
        with Starting(Path(name), {one: kinds[one] for one in kinds if one in asked}) as starting:
            session.stash[_STARTING] = starting
            return (yield)


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
