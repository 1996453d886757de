import json
import socket
import subprocess
import sys
from http.server import ThreadingHTTPServer

import pytest
from support.fake_server import FakeServer
from support.loopback import ANY_PORT, Handler, serving

from kvflow.client.http import Http, NonsenseError, RefusedError
from kvflow.client.server import connect
from kvflow.errors import ServerUnreachable, UsageError


@pytest.mark.parametrize("timeout_s", [0, -1])
def test_http_without_time_is_a_usage_error(timeout_s: float) -> None:
    with pytest.raises(UsageError, match="timeout"):
        Http("http://127.0.0.1:1", None, timeout_s)


async def test_http_to_loopback_goes_past_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with FakeServer().running() as fake:
        async with connect(fake.url) as server:
            assert server.is_sglang


@pytest.mark.parametrize("url", ["socks5://u:secret@127.0.0.1:9", "socks4://u:secret@127.0.0.1:9"])
def test_http_through_a_proxy_that_is_none_for_http_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", url)
    with pytest.raises(UsageError) as refusal:
        Http("http://no-such-host", None, 5.0)
    assert refusal.value.what == "the proxy in ALL_PROXY cannot be used"
    assert "secret" not in str(refusal.value)


def test_http_goes_past_any_proxy_where_no_proxy_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks4://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "*")
    assert Http("http://no-such-host", None, 5.0).url == "http://no-such-host"


async def test_http_get_of_a_path_that_is_not_there_has_the_status_and_the_servers_words() -> None:
    with FakeServer().running() as fake:
        async with Http(fake.url, None, 5.0) as http:
            with pytest.raises(RefusedError) as refusal:
                await http.get("/nowhere", "looking around")
    assert refusal.value.what == "looking around: HTTP 404"
    assert (refusal.value.status, refusal.value.why) == (404, "Not Found")


async def test_http_an_error_keeps_the_servers_words_on_one_short_line() -> None:
    with FakeServer(fault=lambda seen: 500, complaint="so\nmuch " * 200).running() as fake:
        async with Http(fake.url, None, 5.0) as http:
            with pytest.raises(RefusedError) as refusal:
                await http.post("/v1/chat/completions", {"messages": []}, "asking")
    assert "\n" not in refusal.value.why
    assert len(refusal.value.why) <= 300


def test_http_library_is_known_to_one_module_only() -> None:
    program = (
        "import json, sys; import kvflow.client; from kvflow.client import exchange, records; "
        "print(json.dumps([m for m in ('httpx2', 'pydantic', 'rich') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "httpx2" not in json.loads(done.stdout), done.stderr


async def test_http_to_a_name_that_is_none_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*args: object, **options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    async with Http("http://no-such-host", None, 5.0) as http:
        with pytest.raises(ServerUnreachable) as failure:
            await http.get("/v1/models", "connecting")
    assert failure.value.what == "connecting: cannot reach http://no-such-host"
    assert failure.value.why == "Name or service not known"


DEEP = b"[" * 100_000 + b"]" * 100_000


class Deep(Handler):
    """Answers JSON that nobody can look through, as an error where that is asked for."""

    def do_GET(self) -> None:  # noqa: N802 - the name that http.server wants
        self.reply(DEEP, 500 if self.path == "/error" else 200)


class Moved(Handler):
    """Sends whoever posts to another place."""

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server wants
        self.rfile.read(int(self.headers["Content-Length"]))
        self.reply({"message": "moved away"}, 307)


async def test_http_stream_that_is_sent_elsewhere_is_refused() -> None:
    with serving(ThreadingHTTPServer(ANY_PORT, Moved)) as url:
        async with Http(url, None, 5.0) as http:
            with pytest.raises(RefusedError) as refusal:
                await http.stream("/generate", {}, "asking", lambda event: None)
    assert (refusal.value.what, refusal.value.why) == ("asking: HTTP 307", "moved away")


async def test_http_an_answer_that_is_nested_too_deeply_is_nonsense() -> None:
    with serving(ThreadingHTTPServer(ANY_PORT, Deep)) as url:
        async with Http(url, None, 5.0) as http:
            with pytest.raises(NonsenseError, match="not JSON"):
                await http.get("/answer", "asking")


async def test_http_an_error_that_is_nested_too_deeply_is_told_as_text() -> None:
    with serving(ThreadingHTTPServer(ANY_PORT, Deep)) as url:
        async with Http(url, None, 5.0) as http:
            with pytest.raises(RefusedError) as refusal:
                await http.get("/error", "asking")
    assert refusal.value.why == "[" * 300


async def test_http_an_error_gives_a_terminal_no_orders() -> None:
    with FakeServer(fault=lambda seen: 500, complaint="a\x1b[2Jb\x9bc").running() as fake:
        async with Http(fake.url, None, 5.0) as http:
            with pytest.raises(RefusedError) as refusal:
                await http.post("/v1/chat/completions", {"messages": []}, "asking")
    assert refusal.value.why == "a\ufffd[2Jb\ufffdc"
