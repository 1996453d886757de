import signal

import pytest

from kvflow.engine.launch import Interrupts


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_interrupts_signal_is_counted_instead_of_obeyed(
    number: signal.Signals, status: int
) -> None:
    with Interrupts() as interrupts:
        signal.raise_signal(number)

    assert (interrupts.count, interrupts.exit_status) == (1, status)


def test_interrupts_several_count_and_the_first_decides_the_status() -> None:
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)

    assert (interrupts.count, interrupts.exit_status) == (2, 143)


def test_interrupts_end_restores_what_was_there() -> None:
    before = signal.getsignal(signal.SIGINT)

    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before

    assert signal.getsignal(signal.SIGINT) == before


def test_interrupts_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)

    assert interrupts.count == 0
