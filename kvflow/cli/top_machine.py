"""The machine that a server runs on, if it is this one: loopback may be the end of a tunnel."""

import time
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

import psutil

from kvflow.engine.processes import listeners
from kvflow.engine.state import running_servers
from kvflow.loopback import is_loopback
from kvflow.telemetry.host import PsutilHost
from kvflow.telemetry.model import Sample
from kvflow.telemetry.nvml import open_gpus
from kvflow.telemetry.sampler import Sampler

_TUNNELS: Final = ("ssh", "kubectl")
"""What the names of programs begin with that listen here for a server elsewhere."""
_EVERYWHERE: Final = ("0.0.0.0", "::")
_AGAIN_S = 5.0  # between two looks for a server that is not found


class Place(NamedTuple):
    """Where a server runs.

    Attributes:
        pid: its process on this machine, if that is known.
        elsewhere: why it is taken to run on another machine; empty if it runs here.
    """

    pid: int | None = None
    elsewhere: str = ""


def machine_of(url: str) -> Sampler | None:
    """What reads this machine while the server of that URL runs on it; None if it cannot."""
    host = urlsplit(url).hostname or ""
    if is_loopback(host) or any(server.url == url for server in running_servers()):
        return ServerSampler(url)
    return None


def find(url: str) -> Place | None:
    """Where a server runs that may be here; None while nothing listens."""
    wanted = urlsplit(url)
    for server in running_servers():
        if server.url == url or _are_same(urlsplit(server.url), wanted):
            return Place(server.pid)
    port = wanted.port or (443 if wanted.scheme == "https" else 80)
    pids = [one.pid for one in listeners(port) if _near(one.ip)]
    names = {pid: _name(pid) for pid in pids if pid is not None}
    tunnel = next((name for name in names.values() if name.startswith(_TUNNELS)), None)
    if tunnel is not None:
        return Place(elsewhere=f"the server runs elsewhere: {tunnel} listens on this port")
    return Place(next(iter(names), None)) if pids else None


class ServerSampler(Sampler):
    """Reads this machine as long as the server runs on it, be it started anew or later.

    Args:
        url: of the server.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._place = find(url) or Place(elsewhere="no such server is found on this machine")
        self._looked_at = time.monotonic()
        super().__init__(open_gpus(), PsutilHost(self._place.pid))

    def sample(self) -> Sample:
        """Read the machine now; of a server elsewhere only why it is not read."""
        self._look()
        if self._place.elsewhere:
            return Sample(self._clock(), why_no_gpu=self._place.elsewhere)
        return super().sample()

    def _look(self) -> None:
        pid, now = self._place.pid, time.monotonic()
        is_known = pid is not None and psutil.pid_exists(pid)
        if is_known or now - self._looked_at < _AGAIN_S:
            return
        self._looked_at, found = now, find(self._url)
        if found is not None and found != self._place:
            self._place, self._host = found, PsutilHost(found.pid)


def _are_same(one: SplitResult, other: SplitResult) -> bool:
    """Whether two URLs are spellings of one port of loopback."""
    return one.port == other.port and all(is_loopback(url.hostname or "") for url in (one, other))


def _near(ip: str) -> bool:
    """Whether who listens there can be reached through loopback."""
    return ip in _EVERYWHERE or is_loopback(ip)


def _name(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return ""
