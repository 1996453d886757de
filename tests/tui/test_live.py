import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from threading import Event

import msgspec
import pytest
from support.frame_server import Answer, FrameServer
from support.frames import EPOCH_S, make_frame, make_node

from kvflow.errors import KvflowError, NotAuthorised, ServerUnreachable, UsageError
from kvflow.frames import Frame
from kvflow.tui import live
from kvflow.tui.live import GarbageError, LiveSource, NotKvflowError, WrongVersionError
from kvflow.tui.source import Link, Status

PATIENCE_S = 20.0
NOWHERE = "http://127.0.0.1:9"
DEEP = b'{"schema_version": 1, "mode": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
LATER = b'{"schema_version": 2, "mode": "off"}'


async def take(source: LiveSource, frames: int) -> list[Frame]:
    """The first frames of a source."""
    found = []
    async with asyncio.timeout(PATIENCE_S), aclosing(source.frames()) as coming:
        async for frame in coming:
            found.append(frame)
            if len(found) == frames:
                return found
    raise AssertionError("a source never ends")


@asynccontextmanager
async def driven(source: LiveSource) -> AsyncIterator[list[Frame]]:
    """Takes frames in the background, into the list, for as long as the context lasts."""
    found: list[Frame] = []

    async def drive() -> None:
        async with aclosing(source.frames()) as coming:
            async for frame in coming:
                found.append(frame)  # noqa: PERF401 - there is no end to wait for

    task = asyncio.create_task(drive())
    try:
        yield found
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)


async def status_after_failing(source: LiveSource, times: int = 1) -> Status:
    """How a source stands when a server has failed it so often, asked again at once."""
    async with driven(source) as found:
        for failures in range(1, times + 1):
            await until(lambda failures=failures: source.failures == failures)
            if failures < times:
                source.refresh()
        assert found == []
        return source.status


async def test_live_source_asks_for_what_changed_since_the_last_frame() -> None:
    first, second = make_frame(seq=7), make_frame(seq=8, delta_since=7)
    with FrameServer([first, second]).running() as server:
        source = LiveSource(server.url, interval_s=0.01)
        assert source.status == Status(Link.CONNECTING, "CONNECTING")
        assert await take(source, 2) == [first, second]
        assert source.status == Status(Link.LIVE, "LIVE")
    assert server.asked == [{"nodes": "500", "since": "0"}, {"nodes": "500", "since": "7"}]


async def test_live_source_is_live_while_it_waits_for_the_next_answer() -> None:
    seen: list[Status] = []

    def look(_since: int) -> Frame:
        seen.append(source.status)
        return make_frame(seq=2)

    with FrameServer([make_frame(seq=1), look]).running() as server:
        source = LiveSource(server.url, interval_s=0.01)
        await take(source, 2)
    assert seen == [Status(Link.LIVE, "LIVE")]


async def test_live_source_asks_for_the_rest_of_a_large_tree_without_waiting() -> None:
    part = make_frame(make_node(1), seq=1, nodes_left_out=True)
    rest = make_frame(make_node(2), seq=2, delta_since=1)
    with FrameServer([part, rest]).running() as server:
        assert await take(LiveSource(server.url, interval_s=3600), 2) == [part, rest]


async def test_live_source_of_a_server_without_deltas_waits_though_nodes_are_left_out() -> None:
    part = make_frame(seq=0, boot="", nodes_left_out=True)
    with FrameServer([part]).running() as server:
        async with driven(LiveSource(server.url, interval_s=3600)) as found:
            await until(lambda: found)
            await asyncio.sleep(0.3)  # three times what the rest of a tree would wait for
        assert len(server.asked) == 1


async def test_live_source_tells_the_time_where_the_server_does_not() -> None:
    with FrameServer([make_frame(time_s=0.0)]).running() as server:
        [frame] = await take(LiveSource(server.url, unix_time=lambda: EPOCH_S), 1)
    assert frame.time_s == EPOCH_S


async def test_live_source_begins_anew_when_a_change_is_of_another_server() -> None:
    first = make_frame(seq=7)
    alien = make_frame(seq=9, delta_since=7, boot="second")
    whole = make_frame(seq=10, boot="second")
    with FrameServer([first, alien, whole]).running() as server:
        assert await take(LiveSource(server.url, interval_s=0.01), 2) == [first, whole]
    assert [query["since"] for query in server.asked] == ["0", "7", "0"]


@pytest.mark.parametrize(
    ("answer", "link", "label", "why", "hint"),
    [
        (404, Link.NOT_KVFLOW, "NOT KVFLOW (retry in 1 s)", "as the test wants it", "kvflow serve"),
        (504, Link.STALE, "STALE 0 s", "as the test wants it", ""),
        (400, Link.GARBAGE, "GARBAGE (retry in 1 s)", "as the test wants it", ""),
        (b"<html>", Link.GARBAGE, "GARBAGE (retry in 1 s)", "it begins '<html>'", ""),
        (DEEP, Link.GARBAGE, "GARBAGE (retry in 1 s)", "recursion", ""),
        (
            make_frame(time_s=1e300),
            Link.GARBAGE,
            "GARBAGE (retry in 1 s)",
            "its time is 1e+300 s",
            "",
        ),
        (b"[1]", Link.GARBAGE, "GARBAGE (retry in 1 s)", "'[1]'", ""),
        (b'{"schema_version": 1}', Link.GARBAGE, "GARBAGE (retry in 1 s)", "missing required", ""),
        (
            make_frame(delta_since=5),
            Link.GARBAGE,
            "GARBAGE (retry in 1 s)",
            "answered with a change to nothing",
            "",
        ),
        (
            LATER,
            Link.WRONG_VERSION,
            "WRONG VERSION (retry in 1 s)",
            "this kvflow reads version 1",
            "that belongs to the server",
        ),
        ("hang up", Link.DISCONNECTED, "DISCONNECTED (retry in 1 s)", "disconnected", ""),
    ],
)
async def test_live_source_has_a_status_for_every_way_to_fail(
    answer: Answer, link: Link, label: str, why: str, hint: str
) -> None:
    with FrameServer([answer]).running() as server:
        status = await status_after_failing(LiveSource(server.url, clock=lambda: 0.0))
    assert (status.link, status.label, status.is_good) == (link, label, False)
    assert why in status.why
    assert hint in status.hint


async def test_live_source_of_a_server_that_hangs_is_stale_and_names_no_option_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "_ANSWER_S", 0.05)
    over = Event()

    def hang(_since: int) -> bytes:
        over.wait(PATIENCE_S)
        return b""

    with FrameServer([hang]).running() as server:
        status = await status_after_failing(LiveSource(server.url, clock=lambda: 0.0))
        over.set()
    assert status.link is Link.STALE
    assert status.hint == "look at the server's log; over a slow link ask less often: -d 30"


async def test_live_source_that_asks_seldom_waits_as_long_for_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "_ANSWER_S", 0.05)

    def late(_since: int) -> Frame:
        time.sleep(0.3)
        return make_frame()

    with FrameServer([late]).running() as server:
        assert len(await take(LiveSource(server.url, interval_s=30.0), 1)) == 1


async def test_live_source_without_a_server_is_disconnected() -> None:
    status = await status_after_failing(LiveSource(NOWHERE, clock=lambda: 0.0))
    assert status.label == "DISCONNECTED (retry in 1 s)"
    assert status.why == "Connection refused"


async def test_live_source_without_the_key_is_unauthorised_and_with_it_live() -> None:
    with FrameServer([make_frame()], api_key="secret").running() as server:
        status = await status_after_failing(LiveSource(server.url, "wrong", clock=lambda: 0.0))
        assert (status.link, status.label) == (Link.UNAUTHORISED, "UNAUTHORISED (retry in 1 s)")
        assert "KVFLOW_API_KEY" in status.hint
        assert "wrong" not in f"{status.why} {status.hint} {status.label}"
        assert len(await take(LiveSource(server.url, "secret"), 1)) == 1


async def test_live_source_waits_longer_after_each_failure_and_at_most_15_s() -> None:
    labels = []
    for times in (1, 2, 3, 4, 5, 6):
        status = await status_after_failing(LiveSource(NOWHERE, clock=lambda: 0.0), times)
        labels.append(status.label)
    assert labels == [f"DISCONNECTED (retry in {s} s)" for s in (1, 2, 4, 8, 15, 15)]


async def test_live_source_waits_15_s_after_any_number_of_failures() -> None:
    source = LiveSource(NOWHERE, clock=lambda: 0.0)
    source.failures = 5000
    async with driven(source):
        await until(lambda: source.failures > 5000)
        assert source.status.label == "DISCONNECTED (retry in 15 s)"


async def test_live_source_tells_a_moment_once_however_often_the_server_does() -> None:
    first, again = make_frame(seq=1), make_frame(seq=1, delta_since=1)
    second = make_frame(seq=2, delta_since=1, time_s=EPOCH_S + 1)
    with FrameServer([first, again, again, second]).running() as server:
        assert await take(LiveSource(server.url, interval_s=0.01), 2) == [first, second]


async def test_live_source_of_a_server_without_numbers_tells_every_frame() -> None:
    frame = make_frame(seq=0, boot="")
    with FrameServer([frame]).running() as server:
        assert await take(LiveSource(server.url, interval_s=0.01), 2) == [frame, frame]


async def test_live_source_goes_on_when_the_server_is_back() -> None:
    first, again = make_frame(seq=3), make_frame(seq=1, boot="second")
    with FrameServer([first, 503, again]).running() as server:
        source = LiveSource(server.url, interval_s=0.01)
        assert await take(source, 2) == [first, again]
        assert source.status.link is Link.LIVE
    assert [query["since"] for query in server.asked] == ["0", "3", "3"]


async def test_live_source_of_a_slow_server_grows_stale() -> None:
    now = [0.0]
    with FrameServer([make_frame()]).running() as server:
        source = LiveSource(server.url, clock=lambda: now[0])
        await take(source, 1)
    seen = []
    for now[0] in (2.9, 3.1, 61.0):
        seen.append(source.status.label)
    assert seen == ["LIVE", "STALE 3 s", "STALE 61 s"]
    source.interval_s = 60.0
    assert source.status.label == "LIVE"


@pytest.mark.parametrize(
    ("answer", "kind", "exit_code"),
    [
        (404, NotKvflowError, 3),
        (LATER, WrongVersionError, 3),
        (b"{}", GarbageError, 3),
    ],
)
async def test_strict_source_raises_what_goes_wrong_before_the_first_frame(
    answer: Answer, kind: type[KvflowError], exit_code: int
) -> None:
    with FrameServer([answer]).running() as server, pytest.raises(kind) as refusal:
        await take(LiveSource(server.url, strict=True), 1)
    assert refusal.value.exit_code == exit_code
    assert server.url in refusal.value.what


async def test_strict_source_raises_that_nothing_answers_or_wants_a_key() -> None:
    with pytest.raises(ServerUnreachable, match="cannot reach"):
        await take(LiveSource(NOWHERE, strict=True), 1)
    guarded = FrameServer([make_frame()], api_key="secret")
    with guarded.running() as server, pytest.raises(NotAuthorised):
        await take(LiveSource(server.url, strict=True), 1)


async def test_strict_source_bears_what_goes_wrong_after_the_first_frame() -> None:
    with FrameServer([make_frame(seq=1), 500, make_frame(seq=2)]).running() as server:
        source = LiveSource(server.url, interval_s=0.01, strict=True)
        assert [frame.seq for frame in await take(source, 2)] == [1, 2]


def test_live_source_of_no_url_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        LiveSource("ftp://somewhere")


async def test_live_source_reads_frames_with_fields_of_a_later_server() -> None:
    raw = msgspec.json.encode(msgspec.to_builtins(make_frame()) | {"colour": "red"})
    with FrameServer([raw]).running() as server:
        assert await take(LiveSource(server.url), 1) == [make_frame()]
