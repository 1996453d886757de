"""In a real terminal: it starts, answers keys, and leaves the terminal as it was."""

import shlex
import sys
from pathlib import Path

import psutil
import pytest
from support.tmux import Terminal
from support.top_scene import life

from kvflow.tui.record import Recorder
from kvflow.tui.store import Store

KVFLOW = Path(sys.executable).with_name("kvflow")
TESTS = Path(__file__).parents[2]
CRASH = """
from support.top_scene import life
from support.top_sources import Scripted
from kvflow.tui.options import ScreenOptions
from kvflow.tui.screen.app import run

class Broken(Scripted):
    async def frames(self):
        yield life(1)[0]
        raise RuntimeError("a bug")

run(Broken([]), telemetry=None, options=ScreenOptions())
"""


@pytest.fixture
def replay(tmp_path):
    """The command that shows a recording."""
    path, store = tmp_path / "scene.kvtrace", Store()
    with Recorder(path, "a scene") as recorder:
        for frame in life(30):
            store.apply(frame)
            recorder.add(store)
    return shlex.join([str(KVFLOW), "top", "--replay", str(path)])


def test_terminal_shows_the_tree_answers_keys_and_is_restored_by_quit(tmp_path, replay):
    with Terminal(tmp_path, replay, environment={"XDG_STATE_HOME": str(tmp_path)}) as terminal:
        terminal.wait_for("radix tree")
        terminal.wait_for("peer/planner")
        assert terminal.is_in_full_screen
        terminal.press("?")
        terminal.wait_for("on the device alone")
        terminal.press("?")
        terminal.wait_for("esc closes", gone=True)
        terminal.press("/")
        terminal.wait_for("tokens>1k locked !spent")
        terminal.press("l", "o", "c", "k", "e", "d", "Enter")
        terminal.wait_for("filter locked")
        terminal.press("q")
        terminal.wait_for("ended with 0")
        assert not terminal.is_in_full_screen


def test_terminal_shows_the_demo_until_quit(tmp_path):
    with Terminal(tmp_path, shlex.join([str(KVFLOW), "top", "--demo"])) as terminal:
        terminal.wait_for("radix tree")
        terminal.wait_for("REPLAY")
        terminal.wait_for("hits D")
        terminal.press("q")
        terminal.wait_for("ended with 0")
        assert not terminal.is_in_full_screen


def test_terminal_is_restored_by_sigterm(tmp_path, replay):
    with Terminal(tmp_path, replay) as terminal:
        terminal.wait_for("peer/planner")
        [program] = psutil.Process(terminal.pid).children()
        program.terminate()
        terminal.wait_for("ended with 143")
        assert not terminal.is_in_full_screen


def test_terminal_is_restored_by_a_crash_which_is_told(tmp_path):
    script = shlex.join([sys.executable, "-c", CRASH])
    with Terminal(tmp_path, script, environment={"PYTHONPATH": str(TESTS)}) as terminal:
        terminal.wait_for("ended with 1")
        assert not terminal.is_in_full_screen
        assert "a bug" in terminal.screen()
