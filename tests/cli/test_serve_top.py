"""`kvflow serve --top`: a server and its screen, and what the end of one is for the other."""

import os
import pty
import shlex
import signal
import subprocess
import urllib.request
from http.client import RemoteDisconnected

import psutil
import pytest
from support.processes import PATIENCE_S, still_running
from support.serve import IN_TERMINAL, Kvflow
from support.tmux import Terminal


def test_serve_top_shows_the_screen_and_q_ends_both(kvflow: Kvflow) -> None:
    command = shlex.join(kvflow.command("--top"))
    with Terminal(kvflow.folder, command, kvflow.environ(TERM="xterm-256color")) as terminal:
        terminal.wait_for("radix tree")
        below = kvflow.below

        terminal.press("q")

        terminal.wait_for("ended with 0")
    assert not still_running(below)
    assert not kvflow.state_files


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_top_that_is_told_to_end_ends_the_server_in_peace(
    kvflow: Kvflow, number: signal.Signals
) -> None:
    command = shlex.join(kvflow.command("--top"))
    with Terminal(kvflow.folder, command, kvflow.environ(TERM="xterm-256color")) as terminal:
        terminal.wait_for("radix tree")
        below = kvflow.below

        os.kill(kvflow.pid, number)

        terminal.wait_for(f"ended with {128 + number}")
    assert not still_running(below)
    assert not kvflow.state_files
    assert "Gracefully exiting" in kvflow.log


def test_serve_top_whose_terminal_is_closed_ends_the_server_in_peace(kvflow: Kvflow) -> None:
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [*IN_TERMINAL, str(its), *kvflow.command("--top")],
        env=kvflow.environ(TERM="xterm-256color"),
        pass_fds=[its],
    )
    os.close(its)
    seen = b""
    while b"radix tree" not in seen:
        seen += os.read(ours, 65_536)
    below = kvflow.below

    os.close(ours)

    assert process.wait(PATIENCE_S) == 128 + signal.SIGHUP
    assert not still_running(below)
    assert not kvflow.state_files
    assert "Gracefully exiting" in kvflow.log


def test_serve_top_whose_screen_is_killed_goes_on_serving(kvflow: Kvflow) -> None:
    command = shlex.join(kvflow.command("--top"))
    with Terminal(kvflow.folder, command, kvflow.environ(TERM="xterm-256color")) as terminal:
        terminal.wait_for("radix tree")
        below = kvflow.below
        [screen] = [one for one in psutil.Process(kvflow.pid).children() if "top" in one.cmdline()]

        screen.kill()

        terminal.wait_for("the screen has failed, the server goes on")
        assert not terminal.is_in_full_screen
        assert urllib.request.urlopen(f"{kvflow.url}/health", timeout=PATIENCE_S).status == 200
        terminal.press("C-c")
        terminal.wait_for("ended with 130")
    assert not still_running(below)


def test_serve_top_whose_server_dies_says_why(kvflow: Kvflow) -> None:
    command = shlex.join(kvflow.command("--top"))
    environ = kvflow.environ("crash", TERM="xterm-256color")
    with Terminal(kvflow.folder, command, environ) as terminal:
        terminal.wait_for("radix tree")
        with pytest.raises(RemoteDisconnected):
            urllib.request.urlopen(f"{kvflow.url}/crash", timeout=PATIENCE_S)
        terminal.wait_for("ended with 1")
        assert "error: SGLang has ended (ended by SIGKILL)" in terminal.screen()


def test_serve_top_that_cannot_be_shown_starts_nothing(kvflow: Kvflow) -> None:
    settings = kvflow.folder / "config" / "kvflow"
    settings.mkdir(parents=True)
    (settings / "top.yaml").write_text("keymap: {no.such.key: x}\n")
    environ = kvflow.environ(TERM="xterm-256color", XDG_CONFIG_HOME=str(settings.parent))
    with Terminal(kvflow.folder, shlex.join(kvflow.command("--top")), environ) as terminal:
        terminal.wait_for("ended with 2")
        assert "no.such.key" in terminal.screen()
    assert not (kvflow.folder / "pids").exists()
