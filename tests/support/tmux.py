"""A real terminal to look into: a tmux session of a test's own."""

import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE_S = 60.0


class Terminal:
    """A command in a terminal of 80 columns and 24 lines. Use as a context manager.

    Args:
        folder: where tmux keeps its socket.
        command: for a shell.
        environment: variables beside those of the test.
    """

    def __init__(
        self,
        folder: Path,
        command: str,
        environment: dict[str, str] | None = None,
    ) -> None:
        tmux = shutil.which("tmux")
        assert tmux is not None, "this test needs tmux: apt-get install tmux, or brew install tmux"
        self._tmux = [tmux, "-S", str(folder / "socket"), "-f", "/dev/null"]
        self._variables = [f"{key}={value}" for key, value in (environment or {}).items()]
        self._command = command

    def __enter__(self) -> Self:
        shell = f'trap : INT; {self._command}; echo "ended with $?"; exec sleep 600'
        start = ["new-session", "-d", "-x", "80", "-y", "24", "env", *self._variables]
        self._run(*start, "sh", "-c", shell)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._run("kill-server")

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        self._run("send-keys", *keys)

    def screen(self) -> str:
        """What can be seen."""
        return self._run("capture-pane", "-p")

    def wait_for(self, text: str, *, gone: bool = False) -> None:
        """Wait until this text is on the screen, or gone from it."""
        deadline = time.monotonic() + PATIENCE_S
        while (text in (screen := self.screen())) is gone:
            assert time.monotonic() < deadline, (
                f"{text!r} never {'went' if gone else 'came'}:\n{screen}"
            )
            time.sleep(0.1)

    @property
    def is_in_full_screen(self) -> bool:
        """Whether a program has the terminal for itself."""
        return self._run("display-message", "-p", "#{alternate_on}").strip() == "1"

    @property
    def pid(self) -> int:
        """Of the shell that runs the command."""
        return int(self._run("display-message", "-p", "#{pane_pid}"))

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
