"""Where commands write, once nobody reads it any more: real pipes and terminals that are closed."""

import os
import pty
import subprocess
import sys

import pytest

NARRATES = """
from kvflow.cli.serve_narrator import Narrator
with Narrator() as narrator:
    narrator.phase("loading")
    narrator.say("anyone?")
    narrator.done()
print("went on")
"""
FAILS = """
import sys
from kvflow.cli.app import main
sys.argv[1:] = ["recipe", "check", "no-such-recipe"]
main()
"""
PRINTS = """
from kvflow.cli import console
try:
    console.out().print("anyone?")
except BrokenPipeError:
    print("nobody", file=__import__("sys").stderr)
"""


def closed_pipe() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def closed_terminal() -> int:
    ours, its = pty.openpty()
    os.close(ours)
    return its


def run(code: str, **streams: int) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a program; streams that are not given are caught."""
    caught = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    done = subprocess.run([sys.executable, "-c", code], text=True, check=False, **caught)
    for stream in streams.values():
        os.close(stream)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("gone", [closed_pipe, closed_terminal])
def test_narration_that_nobody_reads_lets_the_command_go_on(gone):
    assert run(NARRATES, stderr=gone())[:2] == (0, "went on\n")


@pytest.mark.parametrize("gone", [closed_pipe, closed_terminal])
def test_error_that_nobody_reads_keeps_its_exit_code(gone):
    assert run(FAILS, stderr=gone())[0] == 2


def test_data_that_nobody_reads_is_told_to_the_command():
    _, _, told = run(PRINTS, stdout=closed_pipe())
    assert told.splitlines()[0] == "nobody"
