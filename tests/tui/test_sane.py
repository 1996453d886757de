import time
from collections.abc import Callable

import msgspec
import pytest
from support.frames import (
    ChangingServer,
    busy_frame,
    make_agent,
    make_eviction,
    make_frame,
    make_node,
    make_traffic,
)
from support.top_scene import life

from kvflow.frames import Ages, Frame, Pool, RunState
from kvflow.tui.sane import nonsense

HUGE = 2**53 + 1


def run(**known: object) -> RunState:
    ordinary = {"in_flight": {}, "steps": {}, "idle_ticks": 0, "expected": False}
    return RunState(client="c", workflow="w", run="r", **(ordinary | known))


def ages(**known: tuple[float, ...]) -> Ages:
    ordinary = {"bounds_s": (1.0, 2.0), "hit_tokens": (1, 2, 3), "evicted_tokens": (1, 2, 3)}
    return Ages(**(ordinary | known))


@pytest.mark.parametrize(
    "make",
    [lambda: busy_frame(make_node(1)), lambda: life(60)[-1], lambda: ChangingServer(300).whole()],
    ids=["busy", "scene", "at random"],
)
def test_frame_of_a_server_can_be_true(make: Callable[[], Frame]) -> None:
    assert nonsense(make()) == ""


@pytest.mark.parametrize("time_s", [1e300, -1.0, float("inf"), float("nan")])
def test_time_that_no_calendar_has_cannot_be_true(time_s: float) -> None:
    assert "time" in nonsense(make_frame(time_s=time_s))


@pytest.mark.parametrize("number", [-1, HUGE, 10**400])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: make_frame(running=n),
        lambda n: make_frame(gone=(n,)),
        lambda n: make_frame(device=Pool(capacity=9, free=n, evictable=0, locked=0)),
        lambda n: make_frame(host=Pool(capacity=n, free=0, evictable=0, locked=0)),
        lambda n: make_frame(make_node(1), make_node(2, tokens=n)),
        lambda n: make_frame(agents=(make_agent("a/b", prefix_tokens=n),)),
        lambda n: make_frame(agents=(make_agent("a/b", n),)),
        lambda n: make_frame(evictions=(make_eviction(1, tokens=n),)),
        lambda n: make_frame(run_states=(run(idle_ticks=n),)),
        lambda n: make_frame(run_states=(run(steps={"a": n}),)),
        lambda n: make_frame(traffic=make_traffic(h2d_bytes=n)),
        lambda n: make_frame(counters={"computed_tokens": n}),
        lambda n: make_frame(counters={"bad_hints": {"x": n}}),
        lambda n: make_frame(ages=ages(hit_tokens=(1, 2, n))),
        lambda n: msgspec.structs.replace(
            busy_frame(),
            prefetches=(msgspec.structs.replace(busy_frame().prefetches[0], tokens=n),),
        ),
        lambda n: msgspec.structs.replace(
            busy_frame(),
            waiting_calls=(msgspec.structs.replace(busy_frame().waiting_calls[0], host_tokens=n),),
        ),
    ],
)
def test_count_below_0_or_beyond_what_floats_count_cannot_be_true(
    make: Callable[[int], Frame], number: int
) -> None:
    assert "number" in nonsense(make(number))


@pytest.mark.parametrize("number", [1e300, float("inf"), float("nan")])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: make_frame(uptime_s=n),
        lambda n: make_frame(make_node(1, last_access=n)),
        lambda n: make_frame(evictions=(make_eviction(1, age_s=n),)),
        lambda n: make_frame(ages=ages(bounds_s=(1.0, n))),
    ],
)
def test_duration_beyond_all_measure_cannot_be_true(
    make: Callable[[float], Frame], number: float
) -> None:
    assert "duration" in nonsense(make(number))


@pytest.mark.parametrize("buckets", [(), (1, 2), (1, 2, 3, 4)])
@pytest.mark.parametrize("of", ["hit_tokens", "evicted_tokens"])
def test_ages_with_other_buckets_than_their_bounds_cannot_be_true(
    of: str, buckets: tuple[int, ...]
) -> None:
    assert "ages" in nonsense(make_frame(ages=ages(**{of: buckets})))


def test_part_of_500_nodes_is_looked_through_in_no_time() -> None:
    frame = ChangingServer(500).whole()
    took = []
    for _ in range(20):
        began = time.perf_counter()
        nonsense(frame)
        took.append(time.perf_counter() - began)
    assert min(took) < 0.01
