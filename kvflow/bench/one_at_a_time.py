"""One server at a time: SGLang takes most of a GPU's memory, which leaves no room for a second."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from kvflow.bench.arms import Arm
from kvflow.bench.fleet import Narrate, Station, coming_up, log_of
from kvflow.engine.launch import Launch, Server, before_start
from kvflow.errors import KvflowError

_SHARED = "kvflow"


@dataclass(slots=True)
class OneAtATime:
    """An arm's turn ends the server of the arm before it and starts its own.

    Modes of kvflow share one, on which they are switched: a start takes minutes, warming a cache
    seconds. `taking_turns` makes one of these and ends its last server.

    Attributes:
        launch: how to start the server of an arm, made anew for each start.
        environ: the environment that servers inherit.
        timeout_s: what one start may take.
        narrate: is told what is going on, again and again.
    """

    launch: Callable[[Arm], Launch]
    environ: Mapping[str, str]
    timeout_s: float
    narrate: Narrate
    _name: str = ""
    _station: Station | None = None
    _up: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _failed: dict[str, KvflowError] = field(default_factory=dict)

    def server_of(self, arm: Arm) -> str:
        """Its own for a stock arm; all modes of kvflow have the same."""
        return arm.name if arm.mode is None else _SHARED

    async def station(self, arm: Arm) -> Station:
        """The server of an arm: the one that is up, if that is it and its last turn went through.

        One that could not be started is not tried again.

        Raises:
            KvflowError: it cannot be started, or the one before it does not end.
        """
        name = self.server_of(arm)
        if name in self._failed:
            raise self._failed[name]
        # A server whose turn has failed holds nothing, and may hang.
        if self._station is None or self._name != name or self._station.holds is None:
            self._station = await self._started(name, arm)
        return self._station

    async def _started(self, name: str, arm: Arm) -> Station:
        try:
            self.end()
            launch = self.launch(arm)
            before_start(launch, self.environ)
            server = self._up.enter_context(Server(launch, log_of(name), self.environ))
            for _ in coming_up(name, server, self.timeout_s, self.narrate):
                await asyncio.sleep(0)  # here Ctrl-C gets through
        except KvflowError as error:
            self._failed[name] = error
            self.end()
            raise
        self.narrate("warming the cache and measuring")
        self._name = name
        return Station(launch.url, server)

    def end(self) -> None:
        """End the server that is up, if one is.

        Raises:
            KvflowError: it does not go.
        """
        self._station = None
        self._up.close()


@contextlib.contextmanager
def taking_turns(
    launch: Callable[[Arm], Launch],
    environ: Mapping[str, str],
    timeout_s: float,
    narrate: Narrate,
) -> Iterator[OneAtATime]:
    """Servers one at a time, for as long as the context lasts; see `OneAtATime`."""
    fleet = OneAtATime(launch, environ, timeout_s, narrate)
    try:
        yield fleet
    finally:
        fleet.end()
