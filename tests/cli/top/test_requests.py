"""What can be asked of `kvflow top`, of which server, and what is refused."""

import json
import os
from pathlib import Path

import pytest
from support.frame_server import FrameServer
from support.frames import busy_frame, make_frame
from support.top_command import NODES, error_of, kvflow_top, started

from kvflow.cli import top_show
from kvflow.errors import NotAuthorised, ServerUnreachable, UsageError

# What goes wrong


@pytest.mark.parametrize("mode", ["--once", "--json", "--watch", "--stat"])
def test_top_where_nothing_listens_ends_with_3(mode: str) -> None:
    result = kvflow_top("http://127.0.0.1:9", mode)
    assert isinstance(error_of(result), ServerUnreachable)
    assert error_of(result).exit_code == 3
    assert result.stdout == ""


def test_top_of_a_server_without_kvflow_ends_with_3_and_a_hint() -> None:
    with FrameServer([404]).running() as server:
        error = error_of(kvflow_top(server.url, "--once"))
    assert (error.exit_code, error.hint) == (3, 'start one with "kvflow serve --recipe FILE"')


def test_top_without_the_right_key_ends_with_4() -> None:
    with FrameServer([make_frame()], api_key="right").running() as server:
        result = kvflow_top(server.url, "--once", env={"KVFLOW_API_KEY": "wrong"})
    assert isinstance(error_of(result), NotAuthorised)
    assert error_of(result).exit_code == 4


def test_top_sends_the_key_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    with FrameServer([make_frame()], api_key="secret").running() as server:
        result = kvflow_top(server.url, "--once", "--api-key-file", str(tmp_path / "key"))
    assert result.exit_code == 0
    assert "secret" not in result.output


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--once", "--json"], "--once and --json contradict each other"),
        (["--watch", "--stat", "--no-tui"], "--watch and --stat and --no-tui contradict"),
        (["x:1", "--demo"], "a URL and --demo contradict each other"),
        (["--demo", "--replay", "f"], "--replay and --demo contradict each other"),
        (["--demo", "--record", "f"], "--record does not go with --demo"),
        (["--compare", "f", "g", "--demo"], "--compare and --demo contradict each other"),
        (["--compare", "f", "g", "--watch"], "--compare does not go with --watch"),
        (["--compare", "f", "g", "-1", "--record", "r"], "--record does not go with --compare"),
        (["--no-tui"], "--no-tui shows nothing"),
        (["--record", "f"], "stdout is no terminal that a screen could be shown on"),
        (["--filter", "state:gpu"], "filter, column 1: 'state:gpu'"),
        (["--sort", "size"], "cannot sort by 'size'"),
        (["ftp://x", "--once"], "'ftp://x' is not the URL of a server"),
    ],
)
def test_top_that_makes_no_sense_is_a_usage_error(arguments: list[str], what: str) -> None:
    error = error_of(kvflow_top(*arguments))
    assert isinstance(error, UsageError)
    assert error.what.startswith(what)


@pytest.mark.parametrize(
    "arguments",
    [["-d", "0.1"], ["-d", "61"], ["-d", "soon"], ["--speed", "0"], ["--top", "-1"]],
)
def test_top_with_numbers_out_of_range_is_a_usage_error(arguments: list[str]) -> None:
    assert kvflow_top(*arguments).exit_code == 2


# Which server


def test_top_without_a_url_takes_the_server_that_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    with FrameServer([busy_frame()]).running() as server:
        monkeypatch.setattr(top_show, "running_servers", lambda: [started(server.url)])
        told = json.loads(kvflow_top("--json").stdout)
    assert told["source"]["name"] == server.url
    assert os.getpid() in [process["pid"] for process in told["machine"]["host"]["processes"]]


def test_top_without_a_url_among_several_servers_asks_which(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    servers = [started("http://127.0.0.1:9"), started("http://127.0.0.1:10")]
    monkeypatch.setattr(top_show, "running_servers", lambda: servers)
    error = error_of(kvflow_top("--once"))
    assert "http://127.0.0.1:9, http://127.0.0.1:10" in error.what
    assert error.hint == "say which: kvflow top http://127.0.0.1:9"


def test_top_without_a_url_or_a_server_tries_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    with FrameServer([busy_frame()]).running() as server:
        monkeypatch.setattr(top_show, "DEFAULT_URL", server.url)
        assert kvflow_top("--once").exit_code == 0


# What a person has chosen once and for all


@pytest.mark.usefixtures("settings")
def test_top_with_a_preset_shows_its_nodes_unless_an_option_says_otherwise() -> None:
    with FrameServer([busy_frame(*NODES)]).running() as server:
        chosen = json.loads(kvflow_top(server.url, "--json", "--preset", "warm").stdout)
        arguments = ("--preset", "warm", "--filter", "", "--sort", "id")
        other = json.loads(kvflow_top(server.url, "--json", *arguments).stdout)
    assert [node["id"] for node in chosen["nodes"] if node["hits"] > 1] == [2]
    assert [node["id"] for node in other["nodes"]] == [1, 2, 3]


def test_top_reads_the_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("presets: {warm: {sort: size}}")
    error = error_of(kvflow_top("--demo", "-1", "--config", str(tmp_path / "my.yaml")))
    assert isinstance(error, UsageError)
    assert "my.yaml:1:24: presets.warm.sort: cannot sort by 'size'" in error.what


@pytest.mark.usefixtures("settings")
def test_top_with_an_unknown_preset_suggests_one() -> None:
    error = error_of(kvflow_top("--demo", "-1", "--preset", "worm"))
    assert error.what == "no preset 'worm' (did you mean 'warm'?)"
