"""What Linux tells of the processes of this machine: when they began, and where they listen."""

from pathlib import Path
from typing import NamedTuple

import psutil

_STARTED = 19  # of the fields of /proc/PID/stat after the name: `starttime`, the 22nd of all


class Listener(NamedTuple):
    """Who listens on a port.

    Attributes:
        ip: the address.
        pid: the process; None for one of another user.
    """

    ip: str
    pid: int | None


def listeners(port: int) -> list[Listener]:
    """Everybody who listens on a TCP port of this machine; nobody where that is not told."""
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:  # macOS tells it to nobody but root
        return []
    return [
        Listener(one.laddr.ip, one.pid)
        for one in connections
        if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port
    ]


def start_ticks(pid: int) -> int | None:
    """When a process began, in ticks since the machine started; None if there is none.

    psutil makes a time of it, which moves whenever somebody sets the clock.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # What stands before the last bracket is the name, which may hold any character.
    return int(stat.rpartition(b")")[2].split()[_STARTED])
