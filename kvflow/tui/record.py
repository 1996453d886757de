"""Recordings of a server: what `kvflow top --record` writes and `--replay` reads.

A recording is a gzip file of several members. The first holds the header, each other one a key
frame (the whole tree) and the changes that follow it. Whatever was written before a crash can be
read: members stand by themselves, and each record is flushed.

    record = length (4 bytes, big endian), then a msgpack map

Lists of which a frame repeats most (evictions, prefetches) are written as changes too.
"""

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Protocol, Self, TypeVar

import msgspec

from kvflow import __version__
from kvflow.errors import KvflowError, UsageError
from kvflow.frames import EvictionRecord, Frame, PrefetchRecord
from kvflow.tui.store import Store

FORMAT: Final = "kvtrace"
VERSION: Final = 1
LENGTH: Final = struct.Struct(">I")
GZIP: Final = 31  # zlib's number for a gzip member
_CHANGES_A_KEY = 60


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a recording says of itself first."""

    format: str
    version: int
    kvflow: str  # version that wrote it
    label: str  # of the source


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One frame of a recording.

    Its nodes, evictions and prefetches are those that differ from the record before it in the
    same member. Of the evictions and prefetches that are known then, the latest so many make up
    the frame.
    """

    frame: Frame
    evictions: int
    prefetches: int


class Recorder:
    """Writes what a store is told to a file. Use as a context manager.

    Args:
        path: the file, a new one; or a pipe or a device. Removed at the end if it has no frame.
        label: of the source.

    Raises:
        UsageError: the file is there already.
        KvflowError: the file cannot be written.
    """

    def __init__(self, path: Path, label: str) -> None:
        self._path = path
        self._is_new = path.is_file() or not path.exists()
        try:
            self._file: BinaryIO = path.open("xb" if self._is_new else "wb")
        except FileExistsError as error:
            raise UsageError(
                f"{path} is there already",
                "a recording is never written over",
                "give another name, or remove the file",
            ) from error
        except OSError as error:
            raise _cannot_write(path, error) from error
        self._encoder = msgspec.msgpack.Encoder()
        self._member = zlib.compressobj(wbits=GZIP)
        self._version = -1  # of the store when it was written last
        self._changes = 0  # in this member
        self._evictions: dict[int, EvictionRecord] = {}
        self._prefetches: dict[int, PrefetchRecord] = {}
        self._boot = ""
        self._seq = 0
        header = Header(format=FORMAT, version=VERSION, kvflow=__version__, label=label)
        self._write(header)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def is_empty(self) -> bool:
        """Whether no frame was written yet."""
        return self._version == -1

    def add(self, store: Store) -> None:
        """Write the store's latest frame.

        Raises:
            KvflowError: the file cannot be written.
        """
        frame = store.frame
        if frame is None or store.version == self._version:
            return
        follows = store.version == self._version + 1 and frame.boot == self._boot
        since: int | None = None
        if follows and self._changes < _CHANGES_A_KEY:
            nodes = tuple(store.tree.nodes[one] for one in store.latest.before)
            gone, since = tuple(node.id for node in store.latest.gone), self._seq
            self._changes += 1
        else:
            nodes, gone = tuple(store.tree.nodes.values()), ()
            self._begin_member()
        self._version, self._boot, self._seq = store.version, frame.boot, frame.seq
        whole = msgspec.structs.replace(
            frame,
            nodes=nodes,
            gone=gone,
            delta_since=since,
            nodes_left_out=not store.tree.complete,
            evictions=_news(frame.evictions, self._evictions),
            prefetches=_news(frame.prefetches, self._prefetches),
        )
        counts = len(frame.evictions), len(frame.prefetches)
        self._write(Record(frame=whole, evictions=counts[0], prefetches=counts[1]))

    def close(self) -> None:
        """Finish the file.

        Raises:
            KvflowError: the file cannot be written.
        """
        if not self._file.closed:
            with self._explained(), self._file:
                self._file.write(self._member.flush())
            if self.is_empty and self._is_new:
                with suppress(OSError):
                    self._path.unlink()

    def _begin_member(self) -> None:
        with self._explained():
            self._file.write(self._member.flush())
        self._member = zlib.compressobj(wbits=GZIP)
        self._changes = 0
        self._evictions.clear()
        self._prefetches.clear()

    def _write(self, content: Header | Record) -> None:
        raw = self._encoder.encode(content)
        with self._explained():
            self._file.write(self._member.compress(LENGTH.pack(len(raw)) + raw))
            self._file.write(self._member.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What cannot be written ends the recording."""
        if self._file.closed:
            raise KvflowError(f"cannot write {self._path}", "the recording has ended")
        try:
            yield
        except OSError as error:
            with suppress(OSError):  # of the same failure, again
                self._file.close()
            raise _cannot_write(self._path, error) from error


class _Numbered(Protocol):
    @property
    def seq(self) -> int: ...


Numbered = TypeVar("Numbered", bound=_Numbered)


def _news(now: tuple[Numbered, ...], known: dict[int, Numbered]) -> tuple[Numbered, ...]:
    """Those that are new or have changed; from here on, `now` is what is known."""
    news = tuple(one for one in now if known.get(one.seq) != one)
    known.clear()
    known.update((one.seq, one) for one in now)
    return news


def _cannot_write(path: Path, error: OSError) -> KvflowError:
    return KvflowError(f"cannot write {path}", error.strerror or str(error))
