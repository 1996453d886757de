import http.server
import threading
from collections.abc import Iterator

import pytest

from kvflow.engine.launch.health import HealthProbe


class Answers(http.server.ThreadingHTTPServer):
    """A server that gives its answers one after the other, the last one again and again."""

    def __init__(self, *statuses: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses = list(statuses)
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Answers

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        statuses = self.server.statuses
        self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Answers]:
    with Answers(*request.param) as answers:
        threading.Thread(target=answers.serve_forever, daemon=True).start()
        yield answers
        answers.shutdown()


def becomes_healthy(probe: HealthProbe) -> bool:
    pause = threading.Event()
    for _ in range(200):
        if probe.healthy:
            return True
        pause.wait(0.05)
    return False


@pytest.mark.parametrize("server", [(503, 503, 200)], indirect=True)
def test_probe_unhealthy_at_first_is_asked_again_until_healthy(server: Answers) -> None:
    probe = HealthProbe(server.url)

    assert becomes_healthy(probe)
    assert server.asked == ["/health_generate"] * 3


@pytest.mark.parametrize("server", [(200,)], indirect=True)
def test_probe_ignores_proxies(server: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")

    assert becomes_healthy(HealthProbe(server.url))


@pytest.mark.parametrize("server", [(500,)], indirect=True)
def test_probe_closed_asks_no_more(server: Answers) -> None:
    probe = HealthProbe(server.url)
    pause = threading.Event()
    while not server.asked:
        pause.wait(0.01)

    probe.close()
    for thread in threading.enumerate():
        if thread.name == "kvflow-health":
            thread.join(10)

    assert not [t for t in threading.enumerate() if t.name == "kvflow-health"]
    assert not probe.healthy
