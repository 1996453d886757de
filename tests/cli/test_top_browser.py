"""The screen in a browser: who is served, what a page runs, and that nothing is left of it."""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import psutil
import pytest
import typer
from support.processes import PATIENCE_S, still_running, wait_until
from typer.testing import CliRunner, Result

from kvflow.cli import top
from kvflow.errors import ExitCode, KvflowError, MissingPart, UsageError
from kvflow.tui import browser
from kvflow.tui.config import ConfigError

app = typer.Typer()
app.command()(top.command)
KVFLOW = str(Path(sys.executable).with_name("kvflow"))


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("KVFLOW_API_KEY", "")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """What was to be served, and where, instead of serving it."""
    calls: list[tuple[str, str, int]] = []
    monkeypatch.setattr(
        browser, "serve", lambda command, host, port, say: calls.append((command, host, port))
    )
    return calls


def kvflow_top(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def error_of(result: Result) -> KvflowError:
    assert isinstance(result.exception, KvflowError)
    return result.exception


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("8000", "127.0.0.1", 8000),
        (":8000", "127.0.0.1", 8000),
        ("localhost:80", "localhost", 80),
        ("[::1]:8000", "::1", 8000),
    ],
)
def test_serve_at_an_address_of_this_machine_says_nothing(served, address, host, port) -> None:
    result = kvflow_top("--demo", "--serve", address)
    assert (result.exit_code, result.output) == (0, "")
    assert served[0][1:] == (host, port)


@pytest.mark.parametrize("address", ["0.0.0.0:8000", "[::]:8000", "gpu-box:8000"])
def test_serve_at_another_address_warns_that_no_password_is_asked_for(served, address) -> None:
    result = kvflow_top("--demo", "--serve", address)
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: whoever reaches ")
    assert "no password" in result.stderr


@pytest.mark.parametrize("address", ["", "here", "127.0.0.1", "0", "70000", "::1:80", "a:b:1"])
def test_serve_at_what_is_no_address_is_a_usage_error(served, address) -> None:
    error = error_of(kvflow_top("--demo", "--serve", address))
    assert isinstance(error, UsageError)
    assert error.what == f"{address!r} is no address to serve at"
    assert served == []


def test_page_runs_the_same_command_without_serve(served) -> None:
    given = ("http://h:1", "--filter", "a b", "-d", "2", "--ascii")
    assert kvflow_top(*given, "--serve", "8000").exit_code == 0
    command = served[0][0]
    assert command.endswith(" top http://h:1 --interval 2.0 --filter 'a b' --ascii")


def test_page_compares_the_same_recordings(served) -> None:
    assert kvflow_top("--compare", "a", "b", "--serve", "8000").exit_code == 0
    assert served[0][0].endswith(" top --compare a b")


def test_key_of_the_server_is_in_no_command(served, tmp_path, monkeypatch) -> None:
    (tmp_path / "key").write_text("secret\n")
    result = kvflow_top("http://h:1", "--api-key-file", str(tmp_path / "key"), "--serve", "8000")
    assert result.exit_code == 0
    assert "secret" not in served[0][0]
    assert "key" not in served[0][0]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--once"], "--serve shows the screen and does not go with --once"),
        (["--record", "f"], "--record does not go with --serve"),
    ],
)
def test_serve_of_what_is_no_screen_is_a_usage_error(served, arguments, what) -> None:
    error = error_of(kvflow_top(*arguments, "--serve", "8000"))
    assert isinstance(error, UsageError)
    assert error.what == what


def test_serve_with_keys_that_make_no_sense_fails_before_anybody_opens_a_page(
    served, tmp_path
) -> None:
    (tmp_path / "top.yaml").write_text("keymap: {view.filter: slahs}")
    arguments = ("--demo", "--config", str(tmp_path / "top.yaml"), "--serve", "8000")
    assert isinstance(error_of(kvflow_top(*arguments)), ConfigError)


def test_serve_without_its_parts_says_what_to_install(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "kvflow.tui.browser")
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    error = error_of(kvflow_top("--demo", "--serve", "8000"))
    assert isinstance(error, MissingPart)
    assert (error.exit_code, "kvflow[tui]" in error.hint) == (ExitCode.MISSING, True)


def test_serve_where_somebody_else_listens_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = subprocess.run(
            [KVFLOW, "top", "--demo", "--serve", str(port)], capture_output=True, text=True
        )
    assert run.returncode == ExitCode.FAILURE
    assert f"\nerror: cannot listen at 127.0.0.1:{port}\n" in run.stderr


# A real one


@pytest.fixture
def page() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A program that serves the demo, and its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [KVFLOW, "top", "--demo", "--serve", str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            told = f"kvflow top for browsers: http://127.0.0.1:{port}; Ctrl-C ends it\n"
            assert process.stderr.readline() == told
            wait_until(lambda: _answers(port), "the server")
            yield process, port
        finally:
            process.kill()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_page_is_served_on_loopback_and_shows_the_screen_until_the_program_ends(page) -> None:
    process, port = page
    url = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as answer:
            assert answer.status == 200
            assert f"ws://127.0.0.1:{port}/ws" in await answer.text()
        async with session.ws_connect(f"{url}/ws?width=100&height=30", origin=url) as socket_:
            shown = b""
            async with asyncio.timeout(PATIENCE_S):
                while b"radix tree" not in shown:
                    shown += (await socket_.receive()).data
            family = psutil.Process(process.pid).children(recursive=True)
            assert family
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE_S):
                while not socket_.closed:
                    await socket_.receive()
    assert process.wait(PATIENCE_S) == ExitCode.TERMINATED
    wait_until(lambda: not still_running(family), "the page's program")
    assert process.stdout.read() == ""


def test_serve_is_left_with_ctrl_c_like_a_screen(page) -> None:
    process, _ = page
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0
    assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Host": "evil.example"}],
    ids=["page of another site", "name that leads here"],
)
@pytest.mark.parametrize("path", ["/", "/ws"])
async def test_other_sites_are_refused(page, headers, path) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{page[1]}{path}", headers=headers) as answer,
    ):
        assert answer.status == 403
