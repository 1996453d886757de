"""Two real servers for the tests of this folder, each started once if any test asks for it.

Tests share what a server keeps beyond a flush: runs, prompts and counters. So each file speaks as a
client of its own, with prompts of its own.
"""

from collections.abc import Iterator

import pytest
from support.real_server import RealServer, Starting
from support.server_kinds import server_kinds


@pytest.fixture(scope="session")
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, RealServer]]:
    """The servers that the tests of this run ask for, started side by side."""
    asked = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    folder = tmp_path_factory.mktemp("servers")
    kinds = {name: kind for name, kind in server_kinds(folder).items() if name in asked}
    with Starting(folder, kinds) as starting:
        yield starting.ready()


@pytest.fixture(scope="session")
def stock_server(servers: dict[str, RealServer]) -> RealServer:
    return servers["stock_server"]


@pytest.fixture(scope="session")
def plugin_server(servers: dict[str, RealServer]) -> RealServer:
    return servers["plugin_server"]
