"""Where commands write: pipes and terminals that are closed, and encodings that lack characters."""

import os
import pty
import subprocess
import sys

import pytest

from kvflow.cli.top_show import DEMO

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

ENDS_WITH_A_BAR = """
from kvflow.cli import app, console
app.app = lambda: console.out().print("a bar: \u2588")
app.main()
print("went on")
"""
TOP = """
import sys
from kvflow.cli.app import main
sys.argv[1:] = ["top", *sys.argv[1:]]
main()
"""


def closed_pipe() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def closed_terminal() -> int:
    ours, its = pty.openpty()
    os.close(ours)
    return its


def run(code: str, *words: str, **streams: int) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a program; streams that are not given are caught."""
    caught = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    done = subprocess.run([sys.executable, "-c", code, *words], text=True, check=False, **caught)
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


@pytest.fixture(params=["ascii", "iso-8859-1"])
def _legacy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", request.param)


@pytest.mark.usefixtures("_legacy")
def test_character_that_stdout_cannot_show_is_replaced_and_the_command_goes_on():
    assert run(ENDS_WITH_A_BAR)[:2] == (0, "a bar: ?\nwent on\n")


@pytest.mark.parametrize("words", [("--demo",), ("--compare", str(DEMO), str(DEMO))])
def test_top_prints_ascii_where_stdout_cannot_show_more(words, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    code, picture, told = run(TOP, *words, "--once")
    assert code == 0, told
    assert "?" not in picture
    assert picture.isascii()


def test_stdout_that_lets_undecodable_names_through_goes_on_doing_so(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8:surrogateescape")
    shows = "import sys; sys.stdout.write(ascii(sys.stdout.errors))"
    code = f"from kvflow.cli import app\napp.app = lambda: None\napp.main()\n{shows}"
    assert run(code)[1] == "'surrogateescape'"
