import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.calm import calm
from support.frames import EPOCH_S, ChangingServer, make_frame, make_node
from support.recordings import HEADER, gzipped, recorded

from kvflow.frames import Frame, Node
from kvflow.tui import replay
from kvflow.tui.recording import Recording
from kvflow.tui.replay import ReplaySource
from kvflow.tui.source import Link, Replayable
from kvflow.tui.store import Store

PATIENCE_S = 5.0
FRAMES = 130  # one a second; two key frames after the first

steps = st.integers(-70, 70).map(lambda frames: ("step", frames))
jumps = st.integers(-5, FRAMES + 5).map(lambda place: ("seek", place))
waits = st.sampled_from([0.5, 1, 3, 80]).map(lambda seconds: ("wait", seconds))
others = st.sampled_from([("pause", 0), ("speed", 4.0), ("speed", 0.5)])


@pytest.fixture(scope="module")
def history() -> list[Frame]:
    server = ChangingServer(nodes=20, changes=10)
    return [server.whole(), *(server.delta() for _ in range(FRAMES - 1))]


@pytest.fixture(scope="module")
def recording(history: list[Frame], tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return Recording(recorded(tmp_path_factory.mktemp("replay") / "r", history))


@pytest.fixture(scope="module")
def trees(history: list[Frame]) -> list[dict[int, Node]]:
    """The tree after each frame."""
    store, found = Store(), []
    for frame in history:
        store.apply(frame)
        found.append(dict(store.tree.nodes))
    return found


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_LEAST_REST_S", 0.0)


class Player:
    """Plays a recording into a store, by a clock that a test sets."""

    def __init__(self, recording: Recording, **known: object) -> None:
        self.now, self.store = 0.0, Store()
        self.source = ReplaySource(recording, clock=lambda: self.now, **known)
        self._frames = self.source.frames()

    async def show(self) -> Frame:
        """Wait for the next frame."""
        async with asyncio.timeout(PATIENCE_S):
            frame = await anext(self._frames)
        self.store.apply(frame)
        return frame

    def do(self, action: str, value: float) -> None:
        if action == "wait":
            self.now += value
        elif action == "pause":
            self.source.paused = not self.source.paused
        elif action == "speed":
            self.source.speed = value
        elif action == "step":
            self.source.step(int(value))
        else:
            self.source.seek(value)

    @asynccontextmanager
    async def begun(self) -> AsyncIterator["Player"]:
        """At the first frame, for as long as the context lasts."""
        await self.show()
        try:
            yield self
        finally:
            await self._frames.aclose()


@settings(calm, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.one_of(steps, jumps, waits, others), max_size=8))
def test_replay_shows_the_tree_as_it_was_wherever_one_goes(
    recording: Recording, trees: list[dict[int, Node]], actions: list[tuple[str, float]]
) -> None:
    async def play() -> None:
        shown = 0
        async with Player(recording).begun() as player:
            for action, value in actions:
                player.do(action, value)
                due = recording.at(player.source.position_s)
                if due != shown:
                    frame = await player.show()
                    assert frame.time_s == EPOCH_S + due
                    shown = due
                assert player.store.tree.nodes == trees[due]

    asyncio.run(play())


async def test_replay_gives_frames_when_they_are_due(recording: Recording) -> None:
    async with Player(recording).begun() as player:
        seen = []
        for player.now in (1.0, 2.0, 2.5, 5.0):
            if player.now != 2.5:
                frame = await player.show()
                seen.append((frame.time_s - EPOCH_S, frame.delta_since))
    assert [time_s for time_s, _ in seen] == [1, 2, 5]
    assert None not in [since for _, since in seen]


async def test_replay_plays_as_fast_as_it_is_told(recording: Recording) -> None:
    async with Player(recording, speed=4.0).begun() as player:
        player.now = 2.0
        assert player.source.position_s == 8.0
        player.source.speed = 0.5
        player.now = 4.0
        assert player.source.position_s == 9.0


async def test_replay_that_is_paused_stands_still_and_goes_on_from_there(
    recording: Recording,
) -> None:
    async with Player(recording).begun() as player:
        player.now = 3.0
        player.source.paused = True
        player.now = 50.0
        assert player.source.position_s == 3.0
        player.source.paused = False
        player.now = 51.0
        assert player.source.position_s == 4.0


async def test_replay_steps_frame_by_frame_and_pauses(recording: Recording) -> None:
    async with Player(recording).begun() as player:
        player.source.seek(10.4)
        assert not player.source.paused
        places = []
        for frames in (1, 1, -1, -999, -1, 999, 1):
            player.source.step(frames)
            places.append(player.source.position_s)
        assert player.source.paused
    assert places == [11, 12, 11, 0, 0, FRAMES - 1, FRAMES - 1]


async def test_replay_steps_through_frames_whose_clock_stood_still_or_was_set_back(
    tmp_path: Path,
) -> None:
    frames = [
        make_frame(make_node(number), time_s=EPOCH_S + second)
        for number, second in enumerate((0, 1, 1, 2, -60))
    ]
    player = Player(Recording(recorded(tmp_path / "r", frames)))
    seen = []
    async with player.begun():
        for by in (1, 1, 1, 1, -1, -1, -1, -1):
            player.source.step(by)
            await player.show()
            seen += list(player.store.tree.nodes)
    assert seen == [1, 2, 3, 4, 3, 2, 1, 0]


async def test_replay_stays_at_its_end(recording: Recording) -> None:
    async with Player(recording).begun() as player:
        player.now = 999.0
        assert (await player.show()).time_s == EPOCH_S + FRAMES - 1
        assert player.source.position_s == player.source.duration_s == FRAMES - 1
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(player.show(), 0.1)


async def test_replay_without_an_end_begins_again(recording: Recording) -> None:
    async with Player(recording, endless=True).begun() as player:
        player.now = 999.0
        last, first = await player.show(), await player.show()
        assert (last.time_s, first.time_s) == (EPOCH_S + FRAMES - 1, EPOCH_S)
        assert first.delta_since is None


async def test_replay_status_tells_place_speed_and_pause(recording: Recording) -> None:
    async with Player(recording).begun() as player:
        source, labels = player.source, []
        for action, value in (("wait", 62), ("speed", 2.0), ("pause", 0), ("pause", 0)):
            player.do(action, value)
            labels.append(source.status.label)
        player.now = 999.0
        await player.show()
        labels.append(source.status.label)
    assert labels == [
        "REPLAY 1:02/2:09",
        "REPLAY 1:02/2:09 x2",
        "REPLAY 1:02/2:09 PAUSED",
        "REPLAY 1:02/2:09 x2",
        "REPLAY 2:09/2:09 END",
    ]
    assert (source.status.link, source.status.why, source.status.is_good) == (Link.REPLAY, "", True)


async def test_replay_of_a_restarted_server_shows_it_anew(tmp_path: Path) -> None:
    frames = [
        make_frame(make_node(1), make_node(2), time_s=EPOCH_S),
        make_frame(make_node(1), boot="second", time_s=EPOCH_S + 1),
        make_frame(make_node(3), boot="second", time_s=EPOCH_S + 2, delta_since=1),
    ]
    player = Player(Recording(recorded(tmp_path / "r", frames)))
    async with player.begun():
        player.now = 2.0
        frame = await player.show()
    assert frame.delta_since is None
    assert set(player.store.tree.nodes) == {1, 3}


async def test_replay_of_a_recording_without_an_end_says_so(
    history: list[Frame], tmp_path: Path
) -> None:
    path = recorded(tmp_path / "r", history)
    path.write_bytes(path.read_bytes()[:-100])
    status = ReplaySource(Recording(path)).status
    assert (status.link, status.why) == (Link.REPLAY, "the end of the recording is missing")


async def test_replay_of_a_damaged_recording_has_a_status_and_does_not_end(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(gzipped(HEADER, {"frame": {"time_s": 1.0}}))
    player = Player(Recording(tmp_path / "r"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(player.show(), 0.1)
    assert player.source.status.link is Link.GARBAGE
    assert player.source.status.why == "frame 0 makes no sense"


def test_replay_source_is_replayable(recording: Recording) -> None:
    assert isinstance(ReplaySource(recording), Replayable)
