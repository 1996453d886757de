"""A running SGLang: started under a keeper, watched until it is healthy, ended without a trace."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import psutil

from kvflow.engine.launch import failures, keeper, log, phases, port_lock
from kvflow.engine.launch.command import Launch
from kvflow.engine.launch.health import HealthProbe
from kvflow.engine.launch.phases import Phase
from kvflow.engine.processes import listeners
from kvflow.errors import KvflowError

_TICK_S = 0.1
_GONE_S = 90.0  # a process that holds a GPU can take most of a minute to die


class Progress(NamedTuple):
    """What a start has come to.

    Attributes:
        phase: what SGLang is doing.
        lines: what it has logged since the last look.
        healthy: whether it has answered; nothing follows then.
    """

    phase: Phase
    lines: list[str]
    healthy: bool


class Server:
    """One SGLang server and everything below it.

    Leaving its context ends it at once, if it has not ended before. If this process dies, in
    whatever way, SGLang is ended by its keeper (keeper.py). To be used by one thread.

    Attributes:
        launch: what was started.
        log: SGLang's log.
    """

    def __init__(self, launch: Launch, log_path: Path, environ: Mapping[str, str]) -> None:
        """Start SGLang.

        Raises:
            KvflowError: kvflow has a server at this port that may still be starting; or the log or
                a private file cannot be written.
        """
        self.launch = launch
        self.log = log_path
        with contextlib.ExitStack() as undo:
            try:
                undo.enter_context(port_lock.held(launch.port))
                for path, content in launch.files.items():
                    _write_private(path, content)
                    undo.callback(path.unlink, missing_ok=True)
                output = log.create(log_path)
            except OSError as error:
                hint = "--log-file PATH puts the log elsewhere; XDG_STATE_HOME moves the rest"
                why = error.strerror or str(error)
                raise KvflowError(f"cannot write {error.filename}", why, hint) from error
            undo.callback(os.close, output)
            self._follower = undo.enter_context(contextlib.closing(log.Follower(log_path)))
            self._keeper = _keep(launch, output, environ)
            self._undo = undo.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._undo:
            self.kill()

    def progress(self, timeout_s: float) -> Iterator[Progress]:
        """Watch the start, ten times a second, until the server is healthy.

        Raises:
            KvflowError: SGLang ended, or was not healthy in time.
        """
        phase = Phase.STARTING
        deadline = time.monotonic() + timeout_s
        with contextlib.closing(HealthProbe(self.launch.url)) as probe:
            while True:
                # Before the log is read, so that its last lines are seen.
                healthy, ended = probe.healthy and self._listens(), self.ended
                lines = self.lines()
                for line in lines:
                    phase = phases.after(line, phase)
                yield Progress(phase, lines, healthy and not ended)
                if ended:
                    raise self.failure()
                if healthy:
                    return
                if time.monotonic() > deadline:
                    raise KvflowError(
                        f"SGLang is not ready after {timeout_s:g} s (it was {phase})",
                        "large models take long to download and to load",
                        f"see {self.log}, or wait longer: --timeout {2 * timeout_s:g}",
                    )
                time.sleep(_TICK_S)

    def _listens(self) -> bool:
        """Whether it is SGLang that listens on the port, and not somebody who was faster."""
        try:
            below = psutil.Process(self._keeper.pid).children(recursive=True)
        except psutil.Error:
            return False
        pids = {process.pid for process in below}
        return any(one.pid in pids for one in listeners(self.launch.port))

    def lines(self) -> list[str]:
        """What SGLang has logged since the last look."""
        return self._follower.lines()

    @property
    def ended(self) -> bool:
        """Whether SGLang and everything below it is gone."""
        return self._keeper.poll() is not None

    def failure(self) -> KvflowError:
        """Why SGLang has ended by itself."""
        code = self._keeper.wait()
        how = f"exit status {code}"
        if code < 0:
            how = f"its keeper was ended by {signal.Signals(-code).name}"
        elif code - 128 in signal.valid_signals():
            how = f"ended by {signal.Signals(code - 128).name}"
        return failures.explain(
            self.log,
            log.tail(self.log),
            model=self.launch.model,
            port=self.launch.port,
            ended=f"SGLang has ended ({how})",
        )

    def ask_to_end(self) -> None:
        """Let SGLang finish what it is doing and end; watch `ended` for when it has."""
        self._keeper.terminate()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end; whether it came in time."""
        try:
            self._keeper.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End SGLang and everything below it at once, and wait until it is gone.

        Raises:
            KvflowError: a process does not go, because the kernel holds it.
        """
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        if not self.wait(_GONE_S):
            raise KvflowError(
                f"SGLang does not end (keeper: pid {self._keeper.pid})",
                f"the kernel still holds it {_GONE_S:g} s after it was killed, mostly in a driver",
                "nvidia-smi and dmesg may tell more",
            )
        self._sweep()

    def _sweep(self) -> None:
        """End what is left if somebody killed the keeper: the rest of its session."""
        left = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getsid(process.pid) == self._keeper.pid:
                    process.kill()
                    left.append(process)
        psutil.wait_procs(left, timeout=_GONE_S)


def _keep(launch: Launch, output: int, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # -I -S: the keeper needs the standard library only, and starts in a few milliseconds. A
    # session of its own keeps the terminal's Ctrl-C from SGLang's workers.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", keeper.__file__, *launch.argv],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        env={**environ, **launch.env},
        start_new_session=True,
    )


def _write_private(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
