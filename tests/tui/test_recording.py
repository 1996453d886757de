import gzip
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm
from support.frames import EPOCH_S, ChangingServer, busy_frame, make_eviction, make_frame, make_node
from support.recordings import HEADER, gzipped, recorded

from kvflow.errors import KvflowError, UsageError
from kvflow.frames import Frame, PrefetchRecord, PrefetchStatus
from kvflow.tui.record import LENGTH, VERSION, Record, Recorder
from kvflow.tui.recording import Recording
from kvflow.tui.store import Store

NAN = float("nan")


def moments(frames: list[Frame]) -> list[tuple[object, ...]]:
    """What a store shows after each frame."""
    store, seen = Store(), []
    for frame in frames:
        store.apply(frame)
        seen.append((dict(store.tree.nodes), store.tree.complete, whole(store.frame)))
    return seen


def whole(frame: Frame | None) -> Frame:
    """All of a frame but how it tells its part of the tree."""
    assert frame is not None
    return msgspec.structs.replace(frame, nodes=(), gone=(), delta_since=None, nodes_left_out=False)


def read(path: Path) -> list[Frame]:
    recording = Recording(path)
    return [recording.frame(number) for number in range(len(recording))]


def history(count: int, seed: int = 1) -> list[Frame]:
    server = ChangingServer(nodes=20, seed=seed, changes=10)
    return [server.whole(), *(server.delta() for _ in range(count - 1))]


@calm
@given(st.integers(1, 130), st.integers(0, 99), st.data())
def test_recording_shows_what_was_seen(
    tmp_path_factory: pytest.TempPathFactory, count: int, seed: int, data: st.DataObject
) -> None:
    frames = history(count, seed)
    restart = data.draw(st.integers(0, count))
    frames = [
        *frames[:restart],
        *(msgspec.structs.replace(frame, boot="second") for frame in frames[restart:]),
    ]
    if restart < count:
        frames[restart] = msgspec.structs.replace(frames[restart], delta_since=None)
    path = recorded(tmp_path_factory.mktemp("r") / "some.kvtrace", frames)
    assert moments(read(path)) == moments(frames)


def test_recording_has_a_key_frame_now_and_then(tmp_path: Path) -> None:
    recording = Recording(recorded(tmp_path / "r", history(150)))
    keys = sorted({recording.key_before(number) for number in range(150)})
    assert keys == [0, 61, 122]
    assert [recording.frame(number).delta_since for number in keys] == [None] * 3
    assert recording.frame(62).delta_since == recording.frame(61).seq


def test_recording_is_found_by_time(tmp_path: Path) -> None:
    frames = [make_frame(time_s=EPOCH_S + seconds) for seconds in (0, 1, 5, 6)]
    recording = Recording(recorded(tmp_path / "r", frames))
    assert recording.offsets_s == [0, 1, 5, 6]
    assert recording.duration_s == 6
    assert [recording.at(s) for s in (-1, 0, 0.9, 1, 4.9, 5, 99)] == [0, 0, 0, 1, 1, 2, 3]


def test_recording_across_a_clock_that_was_set_back_goes_on_from_there(tmp_path: Path) -> None:
    frames = [make_frame(time_s=EPOCH_S + seconds) for seconds in (0, 10, -3600, -3590, -3580)]
    recording = Recording(recorded(tmp_path / "r", frames))
    assert recording.offsets_s == pytest.approx([0, 10, 10, 20, 30], abs=0.01)


def test_recording_has_a_moment_for_every_frame_though_its_clock_stood_still(
    tmp_path: Path,
) -> None:
    frames = [make_frame(time_s=EPOCH_S + seconds) for seconds in (0, 1, 1, 1, 2, 1)]
    recording = Recording(recorded(tmp_path / "r", frames))
    assert [recording.at(offset_s) for offset_s in recording.offsets_s] == [0, 1, 2, 3, 4, 5]


def test_recording_keeps_the_label(tmp_path: Path) -> None:
    assert Recording(recorded(tmp_path / "r", history(1), "http://there")).label == "http://there"


def test_recording_tells_evictions_and_prefetches_as_they_were(tmp_path: Path) -> None:
    def prefetch(status: PrefetchStatus) -> PrefetchRecord:
        return PrefetchRecord(seq=1, node=1, agent="a/b", steps=1, tokens=9, status=status)

    frames = [
        make_frame(evictions=(make_eviction(1), make_eviction(2)), seq=1),
        make_frame(
            evictions=(make_eviction(2, regret=True), make_eviction(3)),
            prefetches=(prefetch(PrefetchStatus.LOADING),),
            seq=2,
        ),
        make_frame(
            evictions=(make_eviction(2, regret=True), make_eviction(3)),
            prefetches=(prefetch(PrefetchStatus.USED),),
            seq=3,
        ),
        make_frame(seq=4),
    ]
    back = read(recorded(tmp_path / "r", frames))
    assert [frame.evictions for frame in back] == [frame.evictions for frame in frames]
    assert [frame.prefetches for frame in back] == [frame.prefetches for frame in frames]


def test_recording_that_begins_later_begins_with_the_whole_tree(tmp_path: Path) -> None:
    store = Store()
    store.apply(make_frame(make_node(1)))
    with Recorder(tmp_path / "r", "x") as recorder:
        recorder.add(store)
        recorder.add(store)
        store.apply(make_frame(make_node(2), delta_since=1, time_s=EPOCH_S + 1))
        store.apply(make_frame(make_node(3), delta_since=1, time_s=EPOCH_S + 2))
        recorder.add(store)
    first, second = read(tmp_path / "r")
    assert [node.id for node in first.nodes] == [1]
    assert (second.delta_since, {node.id for node in second.nodes}) == (None, {1, 2, 3})


def test_recording_without_an_end_is_read_up_to_its_last_whole_frame(tmp_path: Path) -> None:
    frames = history(70)
    content = recorded(tmp_path / "r", frames).read_bytes()
    expected = moments(frames)
    lengths = []
    for cut in [*range(300, len(content) - 1, len(content) // 25), len(content) - 1]:
        path = tmp_path / f"cut{cut}"
        path.write_bytes(content[:cut])
        try:
            recording = Recording(path)
        except UsageError:
            continue  # before the first frame
        assert recording.cut_short
        seen = moments(read(path))
        assert seen == expected[: len(seen)]
        lengths.append(len(seen))
    assert lengths == sorted(lengths)
    assert lengths[0] >= 1
    assert lengths[-1] == 70
    assert not Recording(tmp_path / "r").cut_short


def test_recording_that_nobody_closed_has_every_frame(tmp_path: Path) -> None:
    store, recorder = Store(), Recorder(tmp_path / "r", "x")
    frames = history(65)
    for frame in frames:
        store.apply(frame)
        recorder.add(store)
    assert moments(read(tmp_path / "r")) == moments(frames)
    recorder.close()
    recorder.close()


def test_recording_with_a_damaged_byte_ends_before_it(tmp_path: Path) -> None:
    frames = history(70)
    content = bytearray(recorded(tmp_path / "r", frames).read_bytes())
    content[-40] ^= 0xFF
    (tmp_path / "r").write_bytes(content)
    recording = Recording(tmp_path / "r")
    assert recording.cut_short
    assert 61 <= len(recording) < 70


def test_recording_is_a_gzip_file(tmp_path: Path) -> None:
    raw = gzip.decompress(recorded(tmp_path / "r", history(3)).read_bytes())
    (length,) = LENGTH.unpack_from(raw)
    header = msgspec.msgpack.decode(raw[LENGTH.size : LENGTH.size + length])
    assert (header["format"], header["version"]) == ("kvtrace", VERSION)


def test_recording_of_a_steady_server_is_small(tmp_path: Path) -> None:
    evictions = tuple(make_eviction(one) for one in range(512))
    nodes = [make_node(one) for one in range(1, 500)]
    frames = [
        make_frame(*nodes, evictions=evictions, time_s=EPOCH_S + second) for second in range(60)
    ]
    assert recorded(tmp_path / "r", frames).stat().st_size < 30_000


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is no recording of kvflow top"),
        (b"hello", "is no recording of kvflow top"),
        (gzip.compress(b"hello"), "is no recording of kvflow top"),
        (gzipped({"format": "other", "version": 1, "kvflow": "", "label": ""}), "is no recording"),
        (gzipped([1]), "is no recording of kvflow top"),
        (gzipped(msgspec.structs.replace(HEADER, version=2)), "is a recording of version 2"),
        (gzipped(HEADER), "has no frames"),
    ],
    ids=["empty", "text", "compressed text", "other format", "list", "version", "no frames"],
)
def test_file_that_is_no_recording_is_a_usage_error(
    tmp_path: Path, content: bytes, what: str
) -> None:
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(UsageError) as refusal:
        Recording(tmp_path / "r")
    assert refusal.value.what.startswith(f"{tmp_path / 'r'} {what}")


def test_recording_of_a_later_version_says_who_wrote_it(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(gzipped(msgspec.structs.replace(HEADER, version=2)))
    with pytest.raises(UsageError) as refusal:
        Recording(tmp_path / "r")
    assert refusal.value.why == "kvflow 9.9 wrote it; this one reads version 1"


@pytest.mark.parametrize(
    "record",
    [[1], {"frame": {"time_s": "noon"}}, {"frame": {"time_s": 1e300}}, {"frame": {"time_s": NAN}}],
)
def test_recording_with_a_record_that_makes_no_sense_is_damaged(
    tmp_path: Path, record: object
) -> None:
    (tmp_path / "r").write_bytes(gzipped(HEADER, record))
    with pytest.raises(KvflowError, match="is damaged"):
        Recording(tmp_path / "r")


def test_frame_that_makes_no_sense_is_damage_when_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(gzipped(HEADER, {"frame": {"time_s": 1.0}}))
    recording = Recording(tmp_path / "r")
    with pytest.raises(KvflowError, match="is damaged"):
        recording.frame(0)


def test_frame_that_cannot_be_true_is_damage_when_it_is_asked_for(tmp_path: Path) -> None:
    wrong = Record(frame=make_frame(running=-1), evictions=0, prefetches=0)
    (tmp_path / "r").write_bytes(gzipped(HEADER, wrong))
    with pytest.raises(KvflowError, match="is damaged"):
        Recording(tmp_path / "r").frame(0)


def test_recording_with_a_record_that_is_nested_too_deeply_is_damaged(tmp_path: Path) -> None:
    begins = msgspec.msgpack.encode({"frame": {"x": 0}}).removesuffix(b"\0")
    raw = begins + b"\x91" * 100_000 + b"\0"  # an array in an array in an array
    member = gzip.compress(LENGTH.pack(len(raw)) + raw)
    (tmp_path / "r").write_bytes(gzipped(HEADER) + member)
    with pytest.raises(KvflowError, match="is damaged"):
        Recording(tmp_path / "r")


def test_recording_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(KvflowError) as refusal:
        Recording(tmp_path / "none")
    assert refusal.value.why == "No such file or directory"


def test_recording_where_nothing_can_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KvflowError) as refusal:
        Recorder(tmp_path / "no folder" / "r", "x")
    assert refusal.value.what.startswith("cannot write ")


def test_recording_does_not_replace_a_file(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("mine")
    with pytest.raises(UsageError) as refusal:
        Recorder(tmp_path / "r", "x")
    assert refusal.value.what == f"{tmp_path / 'r'} is there already"
    assert refusal.value.hint == "give another name, or remove the file"
    assert (tmp_path / "r").read_text() == "mine"


def test_recording_without_a_frame_leaves_no_file(tmp_path: Path) -> None:
    with Recorder(tmp_path / "r", "x"):
        assert (tmp_path / "r").exists()
    assert not (tmp_path / "r").exists()


def test_recording_without_a_frame_to_a_device_leaves_it_there() -> None:
    with Recorder(Path("/dev/null"), "x") as recorder:
        assert recorder.is_empty
    assert Path("/dev/null").exists()


def test_recording_to_a_full_disk_is_an_error_and_can_be_closed() -> None:
    store = Store()
    store.apply(busy_frame(make_node(1)))
    with pytest.raises(KvflowError) as refusal:
        Recorder(Path("/dev/full"), "x").add(store)
    assert refusal.value.why == "No space left on device"


def test_recording_that_has_ended_takes_no_more_and_says_so(tmp_path: Path) -> None:
    store, recorder = Store(), Recorder(tmp_path / "r", "x")
    store.apply(busy_frame(make_node(1)))
    recorder.close()
    with pytest.raises(KvflowError, match="cannot write"):
        recorder.add(store)
