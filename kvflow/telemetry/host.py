"""Memory and CPU of this machine, and of the server's processes on it, read through psutil."""

import psutil

from kvflow.telemetry.model import Host, ServerProcess


class PsutilHost:
    """Reads this machine.

    Args:
        server_pid: the process that runs the server, if it runs here; what it started counts too.
    """

    def __init__(self, server_pid: int | None = None) -> None:
        self._server_pid = server_pid
        # psutil tells CPU use since the last question to the same object.
        self._known: dict[psutil.Process, psutil.Process] = {}
        psutil.cpu_percent()
        self._cpu_is_known = False

    def read(self) -> Host:
        """The machine, now. CPU use is None the first time: there is nothing to compare with."""
        memory = psutil.virtual_memory()
        cpu = psutil.cpu_percent() / 100
        host = Host(
            memory_total_bytes=memory.total,
            memory_available_bytes=memory.available,
            cpus=psutil.cpu_count() or 1,
            cpu=cpu if self._cpu_is_known else None,
            processes=self._processes(),
        )
        self._cpu_is_known = True
        return host

    def _processes(self) -> tuple[ServerProcess, ...]:
        found, known = [], {}
        for one in self._family():
            process = self._known.get(one, one)
            try:
                with process.oneshot():
                    cpu = process.cpu_percent() / 100
                    found.append(
                        ServerProcess(
                            pid=process.pid,
                            name=process.name(),
                            resident_bytes=process.memory_info().rss,
                            cpu=cpu if one in self._known else None,
                        )
                    )
            except psutil.Error:
                continue  # it has just ended
            known[process] = process
        self._known = known
        return tuple(found)

    def _family(self) -> list[psutil.Process]:
        if self._server_pid is None:
            return []
        try:
            head = psutil.Process(self._server_pid)
            return [head, *head.children(recursive=True)]
        except psutil.Error:
            return []
