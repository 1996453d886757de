"""The servers of a bench: one for each arm, all up side by side."""

import contextlib
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_log_path

from kvflow.bench.arms import Arm
from kvflow.bench.regime import Pools
from kvflow.engine.launch import Device, Launch, Options, Server, before_start, build, demo, verify
from kvflow.recipe.load import Loaded


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
    """How to start the servers that some arms need, by arm.

    Modes of kvflow could be switched on one server, but each switch empties and warms its cache,
    which takes longer than what is measured.

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
            taken.append(held.enter_context(_free_port()))
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


def _free_port() -> socket.socket:
    """A socket that holds a free port of loopback until it is closed."""
    probe = socket.socket()
    probe.bind(("127.0.0.1", 0))
    return probe


@contextlib.contextmanager
def running(
    wanted: Mapping[str, Launch],
    environ: Mapping[str, str],
    timeout_s: float,
    narrate: Callable[[str], None],
) -> Iterator[dict[str, Station]]:
    """Start servers side by side, and end them with the context.

    Args:
        wanted: what to start, by arm.
        environ: the environment that they inherit.
        timeout_s: what one start may take.
        narrate: is told what is going on, again and again.

    Raises:
        KvflowError: one of them cannot be started.
    """
    for launch in wanted.values():
        before_start(launch, environ)
    if any(demo.missing(launch) for launch in wanted.values()):
        narrate("writing the demo model")
        demo.write()
    with contextlib.ExitStack() as stack:
        stations = {
            arm: Station(launch.url, stack.enter_context(Server(launch, _log(arm), environ)))
            for arm, launch in wanted.items()
        }
        for arm, station in stations.items():
            assert station.server is not None
            for step in station.server.progress(timeout_s):
                narrate(f"starting {arm}: {step.phase}")
            verify.plugin(station.server.launch, station.server.log)
        yield stations


def _log(arm: str) -> Path:
    return user_log_path("kvflow") / f"bench-{arm}.log"
