from types import SimpleNamespace

import pytest

from kvflow.engine.quiet import Quiet


def flush(timeout_s: float) -> tuple[SimpleNamespace, float]:
    """SGLang's deferred flush: the request, and when this rank gives it up."""
    return SimpleNamespace(timeout_s=timeout_s), 0.0


def test_quiet_lasts_a_tick_longer_than_a_flush_may_wait() -> None:
    quiet, pending = Quiet(), flush(1.5)
    assert not quiet.lasts(None)
    assert quiet.lasts(pending)
    for _ in range(2):
        quiet.tick()
        assert quiet.lasts(None)
    quiet.tick()
    assert not quiet.lasts(None)


def test_quiet_ends_with_the_flush() -> None:
    quiet = Quiet()
    assert quiet.lasts(flush(60.0))
    quiet.end()
    assert not quiet.lasts(None)


def test_quiet_begins_anew_with_another_flush() -> None:
    quiet, pending = Quiet(), flush(1.0)
    for _ in range(2):
        assert quiet.lasts(pending)
        quiet.tick()
    assert not quiet.lasts(pending)
    assert quiet.lasts(flush(1.0))


@pytest.mark.parametrize("timeout_s", [float("inf"), 1e308, float("nan")])
def test_flush_that_would_wait_for_ever_harms_nothing(timeout_s: float) -> None:
    quiet, pending = Quiet(), flush(timeout_s)
    quiet.lasts(pending)
    quiet.tick()
    quiet.end()
    assert not quiet.lasts(None)
