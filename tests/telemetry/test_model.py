"""Which of a machine's GPUs are the server's."""

from kvflow.telemetry.model import Gpu, Host, Sample, ServerProcess

OURS = Gpu(0, "a", processes=(7, 9))
OTHERS = Gpu(1, "b", processes=(8,))
SILENT = Gpu(2, "c", processes=None)


def host(*pids: int) -> Host:
    processes = tuple(ServerProcess(pid, "scheduler", 10, None) for pid in pids)
    return Host(100, 40, 2, None, processes)


def test_gpus_of_the_server_are_those_that_a_process_of_its_computes_on() -> None:
    sample = Sample(0.0, (OURS, OTHERS, SILENT), host=host(9, 10))
    assert sample.server_gpus == (OURS,)


def test_gpus_of_a_server_whose_processes_are_not_known_are_not_known() -> None:
    gpus = (OURS, OTHERS, SILENT)
    assert Sample(0.0, gpus).server_gpus == ()
    assert Sample(0.0, gpus, host=host()).server_gpus == ()
