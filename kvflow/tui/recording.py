"""Reading a recording: any of its frames, by number. `record` tells the format."""

import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from kvflow.errors import KvflowError, UsageError
from kvflow.frames import EvictionRecord, Frame, PrefetchRecord
from kvflow.tui.record import FORMAT, GZIP, LENGTH, VERSION, Header, Numbered, Record
from kvflow.tui.sane import is_time, nonsense

_CHUNK = 1 << 16
_LEAST_SPACING_S = 0.001  # of two frames


class _When(msgspec.Struct):
    time_s: float


class _Glance(msgspec.Struct):
    """Of a record, what finding it needs: the rest is decoded when it is shown."""

    frame: _When


class _Member(NamedTuple):
    offset: int  # in the file
    first: int  # number of its first frame
    frames: int


class Recording:
    """A recording that was opened. Holds the frames of one member at a time.

    Args:
        path: the file.

    Attributes:
        label: of the source that was recorded.
        offsets_s: when each frame was, in seconds after the first; always growing.
        cut_short: whether its end is missing: it then ends at the last whole frame.

    Raises:
        UsageError: it is none, or of a later version, or has no frame.
        KvflowError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _read(path)
        self._members: list[_Member] = []
        self._loaded: tuple[_Member, list[Frame]] | None = None
        self.offsets_s: list[float] = []
        self._began_s = 0.0  # Unix time of the first frame, by the clock of the latest
        self.cut_short = False
        self.label = self._open()

    def __len__(self) -> int:
        return len(self.offsets_s)

    @property
    def duration_s(self) -> float:
        """From the first frame to the last."""
        return self.offsets_s[-1]

    def at(self, position_s: float) -> int:
        """The number of the frame that is shown so many seconds after the first; at least 0."""
        return max(0, bisect_right(self.offsets_s, position_s) - 1)

    def key_before(self, number: int) -> int:
        """The number of the last key frame at or before a frame."""
        return self._member_of(number).first

    def frame(self, number: int) -> Frame:
        """A frame: the whole tree at a key frame, else what changed since the one before.

        Raises:
            KvflowError: it is damaged.
        """
        member = self._member_of(number)
        if self._loaded is None or self._loaded[0] != member:
            self._loaded = member, self._load(member)
        return self._loaded[1][number - member.first]

    def _member_of(self, number: int) -> _Member:
        place = bisect_right(self._members, number, key=lambda member: member.first)
        return self._members[place - 1]

    def _open(self) -> str:
        header: Header | None = None
        for offset, raw, whole in _members(self._file):
            records, rest = _split(raw)
            self.cut_short |= rest > 0 or not whole
            if header is None:
                header = self._header(records)
            elif records:
                self._note(offset, records)
        if header is None:
            raise self._is_none()
        if not self.offsets_s:
            raise UsageError(f"{self._path} has no frames", "it ended before the first one")
        return header.label

    def _header(self, records: Sequence[bytes]) -> Header:
        try:
            header = msgspec.msgpack.decode(records[0], type=Header)
        except (IndexError, msgspec.DecodeError, RecursionError) as error:
            raise self._is_none() from error
        if header.format != FORMAT:
            raise self._is_none()
        if header.version > VERSION:
            raise UsageError(
                f"{self._path} is a recording of version {header.version}",
                f"kvflow {header.kvflow} wrote it; this one reads version {VERSION}",
                "replay it with that kvflow",
            )
        return header

    def _note(self, offset: int, records: Sequence[bytes]) -> None:
        self._members.append(_Member(offset, len(self), len(records)))
        for raw in records:
            try:
                time_s = msgspec.msgpack.decode(raw, type=_Glance).frame.time_s
            except (msgspec.DecodeError, RecursionError) as error:
                raise self._is_damaged(len(self)) from error
            if not is_time(time_s):
                raise self._is_damaged(len(self))
            self.offsets_s.append(self._offset(time_s))

    def _offset(self, time_s: float) -> float:
        """A moment of its own for each frame, though a clock stands still or was set back."""
        least = self.offsets_s[-1] + _LEAST_SPACING_S if self.offsets_s else 0.0
        if not self.offsets_s or time_s - self._began_s < least:
            self._began_s = time_s - least
        return max(time_s - self._began_s, least)

    def _load(self, member: _Member) -> list[Frame]:
        _, raw, _ = next(_members(self._file[member.offset :]))
        records, _ = _split(raw)
        try:
            told = [msgspec.msgpack.decode(one, type=Record) for one in records]
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._is_damaged(member.first) from error
        if any(nonsense(one.frame) for one in told):
            raise self._is_damaged(member.first)
        return _merged(told)

    def _is_none(self) -> UsageError:
        return UsageError(f"{self._path} is no recording of kvflow top")

    def _is_damaged(self, number: int) -> KvflowError:
        return KvflowError(f"{self._path} is damaged", f"frame {number} makes no sense")


def _read(path: Path) -> memoryview:
    try:
        return memoryview(path.read_bytes())
    except OSError as error:
        raise KvflowError(f"cannot read {path}", error.strerror or str(error)) from error


def _members(file: memoryview) -> Iterator[tuple[int, bytes, bool]]:
    """The members of a gzip file: offset, content, and whether it is whole; up to any damage."""
    offset = 0
    while offset < len(file):
        member = zlib.decompressobj(wbits=GZIP)
        parts: list[bytes] = []
        end = offset
        try:
            while end < len(file) and not member.eof:
                parts.append(member.decompress(file[end : end + _CHUNK]))
                end += _CHUNK
        except zlib.error:
            yield offset, b"".join(parts), False
            return
        yield offset, b"".join(parts), member.eof
        offset = min(end, len(file)) - len(member.unused_data)


def _split(raw: bytes) -> tuple[list[bytes], int]:
    """The whole records of a member, and how many bytes are left over."""
    records, at = [], 0
    while len(raw) - at >= LENGTH.size:
        (length,) = LENGTH.unpack_from(raw, at)
        if len(raw) - at - LENGTH.size < length:
            break
        at += LENGTH.size
        records.append(raw[at : at + length])
        at += length
    return records, len(raw) - at


def _merged(records: Sequence[Record]) -> list[Frame]:
    """The frames of one member, each with all of its evictions and prefetches."""
    evictions: dict[int, EvictionRecord] = {}
    prefetches: dict[int, PrefetchRecord] = {}
    frames = []
    for record in records:
        frame = record.frame
        evictions.update((one.seq, one) for one in frame.evictions)
        prefetches.update((one.seq, one) for one in frame.prefetches)
        frames.append(
            msgspec.structs.replace(
                frame,
                evictions=_latest(evictions, record.evictions),
                prefetches=_latest(prefetches, record.prefetches),
            )
        )
    return frames


def _latest(known: dict[int, Numbered], count: int) -> tuple[Numbered, ...]:
    numbers = sorted(known)
    return tuple(known[one] for one in numbers[len(numbers) - count :])
