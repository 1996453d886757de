"""Two real servers for the tests of this folder, each started once if any test asks for it.

Tests share what a server keeps beyond a flush: runs, prompts and counters. So each file speaks as a
client of its own, with prompts of its own.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.real_server import RealServer, running
from support.server_kinds import server_kinds


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """These tests come last: what is torn down after the last test is up for them alone."""
    items.sort(key=lambda item: Path(__file__).parent in item.path.parents)


@pytest.fixture(scope="session")
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, RealServer]]:
    """The servers that the tests of this run ask for."""
    folder = tmp_path_factory.mktemp("servers")
    asked = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    kinds = {name: kind for name, kind in server_kinds(folder).items() if name in asked}
    with running(folder, kinds) as started:
        yield started


@pytest.fixture(scope="session")
def stock_server(servers: dict[str, RealServer]) -> RealServer:
    return servers["stock_server"]


@pytest.fixture(scope="session")
def plugin_server(servers: dict[str, RealServer]) -> RealServer:
    return servers["plugin_server"]
