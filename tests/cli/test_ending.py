"""A terminal that closes sends SIGHUP twice within a millisecond: from its shell, and itself."""

import asyncio
import os
import signal

import pytest

from kvflow.cli.ending import Ending


async def cleaned_up_after(*numbers: signal.Signals, done: list[str]) -> None:
    try:
        for number in numbers:
            os.kill(os.getpid(), number)
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.01)
        done.append("cleaned up")


def test_ending_by_a_signal_that_comes_twice_at_once_lets_the_command_clean_up() -> None:
    done: list[str] = []
    with Ending() as ending, pytest.raises((KeyboardInterrupt, asyncio.CancelledError)):
        asyncio.run(cleaned_up_after(signal.SIGHUP, signal.SIGHUP, done=done))
    assert (done, ending.exit_status) == (["cleaned up"], 129)


def test_ending_by_a_second_signal_later_on_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kvflow.cli.ending._AT_ONCE_S", 0.0)
    done: list[str] = []
    with Ending(), pytest.raises(KeyboardInterrupt):
        asyncio.run(cleaned_up_after(signal.SIGTERM, signal.SIGTERM, done=done))
    assert done == []
