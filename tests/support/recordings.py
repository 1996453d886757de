"""Recordings for tests."""

import gzip
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kvflow.frames import Frame
from kvflow.tui.record import LENGTH, VERSION, Header, Recorder
from kvflow.tui.store import Store

HEADER = Header(format="kvtrace", version=VERSION, kvflow="9.9", label="x")


def recorded(path: Path, frames: Iterable[Frame], label: str = "a server") -> Path:
    """A recording of what a store showed after each of these frames."""
    store = Store()
    with Recorder(path, label) as recorder:
        for frame in frames:
            store.apply(frame)
            recorder.add(store)
    return path


def gzipped(*contents: object) -> bytes:
    """A recording of these records, whatever they are, each in a member of its own."""
    encoded = [msgspec.msgpack.encode(content) for content in contents]
    return b"".join(gzip.compress(LENGTH.pack(len(raw)) + raw) for raw in encoded)
