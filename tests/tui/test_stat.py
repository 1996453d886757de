import time

import pytest
from support.frames import EPOCH_S, busy_frame, make_frame

from kvflow.frames import Frame
from kvflow.tui.history import History
from kvflow.tui.stat import WIDTH, tick, titles


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def last_tick(*frames: Frame) -> str:
    history = History()
    for frame in frames:
        history.add(frame)
    return text(tick(history.points[-1]))


def text(line: list[tuple[str, object]]) -> str:
    return "".join(piece[0] for piece in line)


def test_tick_stands_below_its_titles() -> None:
    assert [text(line) for line in titles()] == [
        "                      in use          prompts         GB/s       tokens/s",
        "    time  run wait  dev host    dev host miss    h2d   d2h   evict  fetch",
    ]
    assert last_tick(busy_frame(), busy_frame(at=1)) == (
        "22:13:21    1    1  60%  50%    60%  20%  20%   1.00  0.50     250    200"
    )


def test_tick_of_the_first_frame_has_no_rates() -> None:
    assert last_tick(busy_frame()) == (
        "22:13:20    1    1  60%  50%      -    -    -      -     -       -      -"
    )


def test_tick_without_a_host_tier_and_without_prompts_has_dashes() -> None:
    frames = [make_frame(host=None, time_s=EPOCH_S + second) for second in (0, 1)]
    assert last_tick(*frames) == (
        "22:13:21    1    0  60%    -      -    -    -      -     -       0      0"
    )


def test_tick_of_any_size_fits() -> None:
    large = busy_frame(
        at=1,
        running=9999,
        waiting=9999,
        counters={"evicted_device_tokens": 10**9, "prefetched_tokens": 10**9},
    )
    assert len(last_tick(busy_frame(), large)) <= WIDTH
