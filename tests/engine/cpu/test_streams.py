import threading
import time

import pytest

from kvflow.engine.cpu.streams import (
    Event,
    Stream,
    StreamContext,
    StreamFailed,
    current_stream,
)

pytestmark = pytest.mark.engine


@pytest.fixture
def gate():
    flag = threading.Event()
    yield flag
    flag.set()


def busy(stream: Stream, gate: threading.Event) -> None:
    stream.submit(lambda: (gate.wait(10), None)[1])


def test_event_on_an_idle_stream_is_complete():
    event = Event()
    event.record(Stream())
    assert event.query()


def test_event_on_a_busy_stream_completes_with_the_work_before_it(gate):
    stream = Stream()
    busy(stream, gate)
    event = stream.record_event()
    assert not event.query()
    gate.set()
    event.synchronize()
    assert event.query()


def test_event_recorded_again_stands_for_the_new_moment(gate):
    stream = Stream()
    event = stream.record_event()
    assert event.query()
    busy(stream, gate)
    event.record(stream)
    assert not event.query()


def test_events_keep_the_time_between_them():
    stream = Stream()
    before = stream.record_event(Event(enable_timing=True))
    stream.submit(lambda: time.sleep(0.02))
    after = stream.record_event(Event(enable_timing=True))
    after.synchronize()
    assert 20 <= before.elapsed_time(after) < 10_000


def test_event_that_is_not_complete_has_no_time(gate):
    stream = Stream()
    before = stream.record_event()
    busy(stream, gate)
    after = stream.record_event()
    with pytest.raises(RuntimeError, match="not complete"):
        before.elapsed_time(after)


def test_work_of_a_stream_runs_in_order():
    stream, seen = Stream(), []
    for i in range(50):
        stream.submit(lambda i=i: seen.append(i))
    stream.synchronize()
    assert seen == list(range(50))


def test_streams_run_beside_each_other(gate):
    slow, fast = Stream(), Stream()
    busy(slow, gate)
    fast.submit(lambda: None)
    fast.synchronize()
    assert not slow.query()


def test_waiting_stream_with_a_worker_does_not_block_its_caller(gate):
    first, second, seen = Stream(), Stream(), []
    busy(first, gate)
    second.submit(lambda: None)
    second.wait_event(first.record_event())
    second.submit(lambda: seen.append("after"))
    assert not seen
    gate.set()
    second.synchronize()
    assert seen == ["after"]


def test_waiting_stream_without_a_worker_blocks_its_caller_as_a_forward_must(gate):
    copying, compute = Stream(), Stream()
    busy(copying, gate)
    event = copying.record_event()
    threading.Timer(0.05, gate.set).start()
    compute.wait_event(event)
    assert event.query()


def test_wait_stream_waits_for_all_work_of_the_other(gate):
    copying, compute = Stream(), Stream()
    busy(copying, gate)
    threading.Timer(0.05, gate.set).start()
    compute.wait_stream(copying)
    assert copying.query()


def test_current_stream_is_a_matter_of_the_thread():
    mine, seen = Stream(), []
    with StreamContext(mine):
        thread = threading.Thread(target=lambda: seen.append(current_stream()))
        thread.start()
        thread.join()
        assert current_stream() is mine
    assert seen[0] is not mine
    assert current_stream() is not mine


def test_context_nests_and_may_be_entered_again():
    outer, inner = StreamContext(Stream()), StreamContext(Stream())
    with outer, inner, outer:
        assert current_stream() is outer.stream
    with inner:
        assert current_stream() is inner.stream


def test_failed_work_reaches_whoever_asks_and_stays():
    stream = Stream()
    stream.submit(lambda: [][0])
    event = stream.record_event()
    for _ in range(2):
        with pytest.raises(StreamFailed, match="list index out of range"):
            event.synchronize()
        with pytest.raises(StreamFailed):
            stream.synchronize()


def test_forward_that_waits_for_failed_work_gets_the_error():
    stream = Stream()
    stream.submit(lambda: [][0])
    with pytest.raises(StreamFailed):
        Stream().wait_event(stream.record_event())
