import itertools
import time

import pytest
import torch
from support import real_cache

from kvflow.engine.cpu import link, streams

pytestmark = pytest.mark.engine


def layers(count: int, rows: int, width: int = 96) -> list:
    return [torch.randn(rows, 2, width) for _ in range(count)]


def copy(the_link: link.Link, stream: streams.Stream, src, dst, at, to) -> None:
    with streams.StreamContext(stream):
        the_link.transfer_kv_direct(src, dst, at, to, 1)


def test_copy_moves_the_rows_and_leaves_the_others():
    src, dst = layers(3, 700), layers(3, 900)
    before = [layer.clone() for layer in dst]
    at, to = torch.randperm(700)[:500], torch.randperm(900)[:500]
    stream = streams.Stream()
    copy(link.Link(), stream, src, dst, at, to)
    stream.synchronize()
    rest = torch.ones(900, dtype=torch.bool)
    rest[to] = False
    for s, d, b in zip(src, dst, before, strict=True):
        assert torch.equal(d[to], s[at])
        assert torch.equal(d[rest], b[rest])


def test_copy_writes_into_tensors_made_in_inference_mode():
    with torch.inference_mode():
        src, dst = layers(1, 10), layers(1, 10)
    stream = streams.Stream()
    copy(link.Link(), stream, src, dst, torch.arange(10), torch.arange(10))
    stream.synchronize()
    assert torch.equal(src[0], dst[0])


def test_copy_is_no_faster_than_the_link():
    src, dst = layers(2, 1000), layers(2, 1000)
    nbytes = sum(layer.nbytes for layer in src)
    stream = streams.Stream()
    began = time.perf_counter()
    rows = torch.arange(1000)
    copy(link.Link(lambda: nbytes / 0.5 / 1e9), stream, src, dst, rows, rows)
    assert not stream.query()
    stream.synchronize()
    assert time.perf_counter() - began >= 0.5


def test_copy_survives_that_time_passes_between_two_looks_at_the_clock(monkeypatch):
    """A process that is not scheduled for a while must not ask for a negative sleep."""
    ticks = itertools.count()
    monkeypatch.setattr(link.time, "perf_counter", lambda: float(next(ticks)))
    slept = []
    monkeypatch.setattr(link.time, "sleep", slept.append)
    src, dst, rows = layers(1, 64), layers(1, 64), torch.arange(64)
    stream = streams.Stream()
    copy(link.Link(lambda: src[0].nbytes / 1.5 / 1e9), stream, src, dst, rows, rows)
    stream.synchronize()
    assert torch.equal(src[0], dst[0])
    assert all(seconds >= 0 for seconds in slept)
    assert slept


def test_copies_of_one_stream_queue_behind_each_other():
    src, dst, rows = layers(1, 500), layers(1, 500), torch.arange(500)
    the_link, stream = link.Link(lambda: src[0].nbytes / 0.03 / 1e9), streams.Stream()
    began = time.perf_counter()
    for _ in range(3):
        copy(the_link, stream, src, dst, rows, rows)
    stream.synchronize()
    assert time.perf_counter() - began >= 0.09


def test_copy_that_fails_is_reported_by_the_stream():
    stream = streams.Stream()
    copy(link.Link(), stream, layers(1, 4), layers(1, 4), torch.tensor([9]), torch.tensor([0]))
    with pytest.raises(streams.StreamFailed):
        stream.synchronize()


def device_pool(count: int, rows: int) -> list:
    """Keys, then values, of a device pool: an allocation for each layer, as SGLang has them."""
    fused = [torch.randn(2, rows, 2, 96) for _ in range(count)]
    return [layer[0] for layer in fused] + [layer[1] for layer in fused]


def host_pool(count: int, rows: int) -> list:
    """The same of a host pool: one allocation."""
    fused = torch.randn(2, count, rows, 2, 96)
    return [*fused[0], *fused[1]]


def test_copies_to_the_device_are_noted_from_begin_to_end(tmp_path, monkeypatch):
    log = tmp_path / "copies.log"
    monkeypatch.setenv("KVFLOW_LINK_LOG", str(log))
    monkeypatch.setenv("KVFLOW_LINK_GBPS", "0.001")
    the_link, stream, rows = link.from_environment(), streams.Stream(), torch.arange(40)
    began = time.perf_counter()
    for _ in range(2):
        copy(the_link, stream, host_pool(2, 60), device_pool(2, 90), rows, rows)
    stream.synchronize()
    ended = time.perf_counter()
    noted = [[float(text) for text in line.split()] for line in log.read_text().splitlines()]
    assert [began, *noted[0], *noted[1], ended] == sorted([began, *noted[0], *noted[1], ended])
    for start, end in noted:
        assert end - start >= 4 * 40 * 2 * 96 * 4 / 1e6


@pytest.mark.parametrize("page_size", [1, 16])
def test_direction_of_a_copy_shows_in_the_pools_of_sglang(page_size):
    cache = real_cache.build(page_size, tokens=256, host_ratio=1.5, core="python")
    host, device = real_cache.host_pool(cache), cache.cache_controller.mem_pool_device
    for kind in ("k_buffer", "v_buffer"):
        for ours, theirs in zip(getattr(host, kind), getattr(device, kind), strict=True):
            assert link._is_to_device(ours, theirs)
            assert not link._is_to_device(theirs, ours)


def test_copies_to_the_host_are_not_noted():
    noted, stream, rows = [], streams.Stream(), torch.arange(40)
    the_link = link.Link(note=lambda *times: noted.append(times))
    copy(the_link, stream, device_pool(2, 60), host_pool(2, 90), rows, rows)
    stream.synchronize()
    assert noted == []


def test_copy_whose_note_cannot_be_written_goes_through(tmp_path, monkeypatch):
    monkeypatch.setenv("KVFLOW_LINK_LOG", str(tmp_path / "no folder" / "copies.log"))
    src, dst, rows = host_pool(2, 10), device_pool(2, 10), torch.arange(10)
    stream = streams.Stream()
    copy(link.from_environment(), stream, src, dst, rows, rows)
    stream.synchronize()
    assert torch.equal(src[0], dst[0])


def test_speed_from_a_file_is_read_again(tmp_path, monkeypatch):
    file = tmp_path / "gbps"
    monkeypatch.setenv("KVFLOW_LINK_GBPS", f"@{file}")
    the_link = link.from_environment()
    file.write_text("0.5\n")
    assert the_link._gbps() == 0.5
    file.write_text("")
    assert the_link._gbps() is None


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan", "fast"])
def test_speed_that_makes_no_sense_is_refused(text):
    with pytest.raises(ValueError, match=r"fast|speed"):
        link.parse_gbps(text)
