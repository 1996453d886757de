"""`kvflow serve` of the stand-in for SGLang, as a process, and what can be seen of it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import IO

import psutil
from support.launches import fake_environment, free_port
from support.processes import PATIENCE_S, processes_listed_in

KVFLOW = (sys.executable, "-c", "from kvflow.cli.app import main; main()")
# Makes a terminal the controlling one of a session of its own, as a terminal window does.
IN_TERMINAL = (
    sys.executable,
    "-c",
    "import os, sys; os.login_tty(int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])",
)


class Kvflow:
    """A `kvflow serve` of the stand-in for SGLang, on a port of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "model").mkdir()
        self.started: list[subprocess.Popen[str]] = []

    def command(self, *words: str) -> list[str]:
        common = ["--device", "cpu", "--model", str(self.folder / "model")]
        return [*KVFLOW, "serve", *common, "--port", str(self.port), *words]

    def environ(self, behaviour: str = "serve", **more: str) -> dict[str, str]:
        return fake_environment(self.folder, behaviour, **more)

    def start(self, *words: str, behaviour: str = "serve", **more: str) -> "subprocess.Popen[str]":
        with (self.folder / "stderr").open("w") as stderr:
            process = subprocess.Popen(
                self.command(*words),
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=self.environ(behaviour, **more),
                text=True,
            )
        self.started.append(process)
        return process

    def ready(self, *words: str, behaviour: str = "serve") -> "subprocess.Popen[str]":
        process = self.start(*words, behaviour=behaviour)
        assert first_line(process.stdout) == self.url, self.stderr
        return process

    def run(self, *words: str, behaviour: str = "serve", **more: str) -> tuple[int, str]:
        """Run to the end; the exit status and what came on stdout."""
        process = self.start(*words, behaviour=behaviour, **more)
        stdout, _ = process.communicate(timeout=PATIENCE_S)
        return process.returncode, stdout

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    @property
    def pid(self) -> int:
        """Of kvflow itself, once it serves."""
        [state] = self.state_files
        return int(json.loads(state.read_text())["pid"])

    @property
    def log(self) -> str:
        [log] = (self.folder / "state" / "kvflow").glob("*/log/*.log")
        return log.read_text()

    @property
    def below(self) -> list[psutil.Process]:
        return processes_listed_in(self.folder / "pids")

    @property
    def state_files(self) -> list[Path]:
        return list((self.folder / "state" / "kvflow").glob("*/servers/*"))


def first_line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline().rstrip("\n")
