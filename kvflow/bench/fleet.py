"""The servers of a bench: how they are started, and all of them up side by side."""

import contextlib
import random
import socket
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kvflow.bench.arms import Arm
from kvflow.bench.regime import Pools
from kvflow.engine.launch import (
    Device,
    Launch,
    Options,
    Server,
    before_start,
    build,
    demo,
    log,
    verify,
)
from kvflow.errors import KvflowError
from kvflow.recipe.load import Loaded

Narrate = Callable[[str], None]

_PORTS = range(10_000, 20_000)


@dataclass(slots=True)
class Station:
    """A server that arms are measured on.

    Attributes:
        url: where it answers.
        server: the process, if the bench has started it.
        holds: the setting and arm that its cache is warm for; None if it is not.
    """

    url: str
    server: Server | None = None
    holds: tuple[str, str] | None = None

    @property
    def port(self) -> int | None:
        """Its port, if the bench has started it."""
        return self.server.launch.port if self.server else None

    @property
    def on_gpu(self) -> bool:
        """Whether the bench has started it on a GPU."""
        return self.server is not None and self.server.launch.device == "cuda"

    def death(self) -> KvflowError | None:
        """Why the process has ended by itself; None if it has not, or is somebody else's."""
        if self.server is not None and self.server.wait(1.0):
            return self.server.failure()
        return None

    @property
    def link_log(self) -> Path | None:
        """Where its emulated link notes copies to the device; None of a real one."""
        log = self.server.launch.env.get("KVFLOW_LINK_LOG") if self.server else None
        return Path(log) if log else None


class Fleet(Protocol):
    """Where each arm finds its server."""

    def server_of(self, arm: Arm) -> str:
        """Name of the server that an arm is measured on."""

    async def station(self, arm: Arm) -> Station:
        """That server, up and ready for a turn.

        Raises:
            KvflowError: it cannot be started.
        """


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A server for each arm, so that a cache stays as it is while other arms take their turn.

    Modes of kvflow could be switched on one server, but each switch empties and warms its cache,
    which takes longer than what is measured.

    Attributes:
        stations: those that came up, by arm.
        failed: why the others did not, or were left out.
    """

    stations: Mapping[str, Station]
    failed: MutableMapping[str, KvflowError]

    def server_of(self, arm: Arm) -> str:
        """Its own."""
        return arm.name

    async def station(self, arm: Arm) -> Station:
        """The server, which has been up all along.

        Raises:
            KvflowError: it could not be started, or was left out.
        """
        if arm.name in self.failed:
            raise self.failed[arm.name]
        return self.stations[arm.name]

    def leave_out(self, arm: str, why: KvflowError) -> None:
        """End the server of an arm, lest it takes time from the others.

        Raises:
            KvflowError: it does not go.
        """
        self.failed[arm] = why
        if (server := self.stations[arm].server) is not None:
            server.kill()


def launches(
    arms: Sequence[Arm],
    loaded: Loaded,
    pools: Pools,
    *,
    device: Device,
    model: str | None,
    flags: Sequence[str] = (),
    environ: Mapping[str, str],
) -> dict[str, Launch]:
    """How to start a server for each arm, by arm, each at a port that is free now.

    Args:
        arms: to be measured.
        loaded: the recipe that kvflow is told.
        pools: the device pools.
        device: what SGLang runs on.
        model: path or name; None for the recipe's or the built-in one.
        flags: for SGLang, of all arms alike.
        environ: the environment that the servers will inherit.

    Raises:
        UsageError: the flags contradict what the bench needs.
    """
    found: dict[str, Launch] = {}
    taken: list[socket.socket] = []
    with contextlib.ExitStack() as held:
        for arm in arms:
            taken.append(held.enter_context(free_port()))
            tokens = pools.limit if arm.name == "limit" else pools.pressed
            pool = () if tokens is None else ("--max-total-tokens", str(tokens))
            options = Options(
                device=device,
                model=model,
                port=taken[-1].getsockname()[1],
                with_plugin=arm.mode is not None,
                mode=arm.mode,
                host_tier=arm.has_host_tier,
                sglang_flags=(*flags, *pool),
            )
            found[arm.name] = build(options, loaded, environ)
    return found


def free_port() -> socket.socket:
    """A socket that holds a free port of loopback until it is closed.

    It is none that the system gives to whoever asks for any, nor one of those that SGLang looks
    for its own among: between now and when SGLang listens lie minutes.
    """
    while True:
        probe = socket.socket()
        try:
            probe.bind(("127.0.0.1", random.choice(_PORTS)))
        except OSError:
            probe.close()
        else:
            return probe


@contextlib.contextmanager
def running(
    wanted: Mapping[str, Launch],
    environ: Mapping[str, str],
    timeout_s: float,
    narrate: Narrate,
    failed: MutableMapping[str, KvflowError] | None = None,
) -> Iterator[dict[str, Station]]:
    """Start servers side by side, and end them with the context.

    Args:
        wanted: what to start, by arm.
        environ: the environment that they inherit.
        timeout_s: what one start may take.
        narrate: is told what is going on, again and again.
        failed: is given the arms whose servers cannot be started, each with its reason, and the
            others go on; without it the first such error is raised.

    Raises:
        KvflowError: nothing can be started here; or one server cannot, or not even one of them.
    """
    for launch in wanted.values():
        before_start(launch, environ)
    if any(demo.missing(launch) for launch in wanted.values()):
        narrate("writing the demo model")
        demo.write()
    with contextlib.ExitStack() as stack:
        servers = {
            arm: stack.enter_context(Server(launch, log_of(arm), environ))
            for arm, launch in wanted.items()
        }
        stations: dict[str, Station] = {}
        for arm, server in servers.items():
            try:
                for _ in coming_up(arm, server, timeout_s, narrate):
                    pass
            except KvflowError as error:
                if failed is None:
                    raise
                failed[arm] = error
                server.kill()
            else:
                stations[arm] = Station(server.launch.url, server)
        if failed and not stations:
            raise next(iter(failed.values()))
        yield stations


def coming_up(name: str, server: Server, timeout_s: float, narrate: Narrate) -> Iterator[None]:
    """Watch a start, a few times a second, until the server can be measured.

    Raises:
        KvflowError: SGLang ends, is not ready in time, or is up without what was asked for.
    """
    for step in server.progress(timeout_s):
        narrate(f"starting {name}: {step.phase}")
        yield
    verify.plugin(server.launch, server.log)


def log_of(name: str) -> Path:
    """Where SGLang's log of a server goes."""
    return log.folder_of_process("bench") / f"{name}.log"
