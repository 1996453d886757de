"""One session of `kvflow serve`: from the checks before the start to the last process's end."""

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from kvflow.cli.serve_narrator import Narrator
from kvflow.cli.serve_screen import showing
from kvflow.cli.streams import forget
from kvflow.engine.launch import Interrupts, Launch, Server, before_start, demo, verify
from kvflow.engine.processes import start_ticks
from kvflow.engine.state import ServerState, announced
from kvflow.errors import KvflowError
from kvflow.recipe.load import Loaded

_DRAIN_S = 30.0
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Session:
    """How a server is to be run and shown.

    Attributes:
        launch: what to start.
        narrator: where to tell what happens.
        log: where SGLang's log goes.
        timeout_s: how long the start may take.
        recipe: the recipe as it was typed, for the commands to type next.
        as_json: whether to print the server's state instead of its URL.
        echo: shown each new batch of SGLang's log lines.
        warm: a recipe whose fixed prefixes are to be computed before the server is announced.
        api_key: that the server asks for.
        with_screen: whether `kvflow top` shows the server; to leave it ends the server.
    """

    launch: Launch
    narrator: Narrator
    log: Path
    timeout_s: float
    recipe: str | None
    as_json: bool
    echo: Callable[[list[str]], None]
    warm: Loaded | None = None
    api_key: str | None = None
    with_screen: bool = False

    def run(self) -> int:
        """Serve until a signal asks for the end, or the screen is left.

        Returns:
            The exit status that the signal stands for; 0 after the screen.

        Raises:
            KvflowError: SGLang could not be started, or ended by itself.
        """
        self.narrator.phase("checking")
        before_start(self.launch, os.environ)
        if demo.missing(self.launch):
            self.narrator.phase("writing the demo model")
            demo.write()
        with Interrupts() as interrupts, Server(self.launch, self.log, os.environ) as server:
            self.narrator.say(f"SGLang's log: {self.log}")
            left = False
            if self._start(server, interrupts):
                verify.plugin(self.launch, self.log)
                self._warm(interrupts)
                with announced(self._state()):
                    left = self._watch(server, interrupts)
            if not interrupts.count and not left:
                raise server.failure()
            self._end(server, interrupts)
            return interrupts.exit_status if interrupts.count else 0

    def _start(self, server: Server, interrupts: Interrupts) -> bool:
        """Whether the server has become healthy, and not been told to end before."""
        for step in server.progress(self.timeout_s):
            self.narrator.phase(step.phase)
            self.echo(step.lines)
            if interrupts.count:
                return False
        return True

    def _warm(self, interrupts: Interrupts) -> None:
        """Bring the recipe's prefixes into the host tier. A server that stays cold serves, too."""
        if self.warm is None:
            return
        self.narrator.done()
        try:
            asyncio.run(self._warm_each(self.warm, interrupts))
        except KvflowError as error:
            self.narrator.failed()
            self.narrator.say(f"warning: not every prefix is warm: {error.what}: {error.why}")

    async def _warm_each(self, loaded: Loaded, interrupts: Interrupts) -> None:
        from kvflow.client.server import connect
        from kvflow.client.warm import warm

        number, agents = 0, len(loaded.recipe.agents)
        async with connect(self.launch.url, api_key=self.api_key) as server:
            async for agent in warm(loaded, server):
                if interrupts.count:
                    return
                number += 1
                self.narrator.phase(f"warming {agent}, {number} of {agents}")

    def _state(self) -> ServerState:
        return ServerState(
            url=self.launch.url,
            pid=os.getpid(),
            created=psutil.Process().create_time(),
            started_at=time.time(),
            device=self.launch.device,
            mode=self.launch.mode,
            model=self.launch.model,
            recipe=str(self.launch.recipe) if self.launch.recipe else None,
            start_ticks=start_ticks(os.getpid()),
        )

    def _watch(self, server: Server, interrupts: Interrupts) -> bool:
        """Wait for the end, which is near then; whether somebody asked for it on the screen."""
        self.narrator.done()
        self._announce()
        if self.with_screen and self._show(server, interrupts):
            return True
        while not interrupts.count and not server.ended:
            self.echo(server.lines())
            time.sleep(_LOOK_S)
        return False

    def _show(self, server: Server, interrupts: Interrupts) -> bool:
        """Show the screen; whether somebody has left it. One that fails is no end of the server."""
        with showing(self.launch.url, self.api_key) as screen:
            while screen.poll() is None and not interrupts.count and not server.ended:
                time.sleep(_LOOK_S)
            ended_by_itself = screen.returncode is not None
        if ended_by_itself and screen.returncode != 0:
            self.narrator.say("the screen has failed, the server goes on; Ctrl-C ends it")
        return ended_by_itself and screen.returncode == 0

    def _announce(self) -> None:
        state, url = self._state(), self.launch.url
        self.narrator.say(f"ready after {self.narrator.elapsed_s:.0f} s; Ctrl-C ends it")
        if self.as_json:
            _print(json.dumps({"schema_version": 1, **msgspec.to_builtins(state)}))
        else:
            _print(url)
        recipe = shlex.quote(self.recipe or "peer")
        graph = f"kvflow recipe graph {recipe}"
        info = f"curl -s {url}/server_info"
        self.narrator.say(f"next: kvflow run {recipe} {url}")
        self.narrator.say(f"      {graph if self.recipe else info}")

    def _end(self, server: Server, interrupts: Interrupts) -> None:
        """End the server in peace; at once when asked again, or when it takes too long."""
        seen = interrupts.count
        server.ask_to_end()
        self.narrator.say(
            f"ending SGLang, which finishes what it is doing ({_DRAIN_S:g} s at most); "
            "Ctrl-C again ends it at once"
        )
        deadline = time.monotonic() + _DRAIN_S
        while not server.wait(_LOOK_S):
            self.echo(server.lines())
            if interrupts.count > seen or time.monotonic() > deadline:
                self.narrator.say("ending SGLang at once")
                break
        server.kill()
        self.narrator.say("SGLang has ended")


def _print(line: str) -> None:
    """Print to stdout, if it is still there: a closed terminal or pipe must not end a server."""
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except OSError:
        forget(sys.stdout)
