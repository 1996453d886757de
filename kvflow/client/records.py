"""What a drive leaves behind: a record of every call and every run, as they go."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from kvflow.client.exchange import Answer
from kvflow.workload import Call


class CallState(StrEnum):
    """How far a call has come, as its client can tell."""

    WAITING = "waiting"  # for its predecessors
    PREFILL = "prefill"  # sent, no token yet; time in the server's queue counts here
    DECODING = "decoding"
    DONE = "done"
    FAILED = "failed"


@dataclass(slots=True)
class CallRecord:
    """One call of a drive. Changes while the call is in flight.

    Attributes:
        call: what was to be asked.
        run: id of the run, as in the tag.
        state: how far it has come.
        started_s: when its prompt was ready to be sent, in seconds from the start of the drive;
            None before that.
        answer: what came back; None unless done.
        error: why it failed, in one line; empty unless failed.
    """

    call: Call
    run: str
    state: CallState = CallState.WAITING
    started_s: float | None = None
    answer: Answer | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of a drive, when it has ended.

    Attributes:
        run: its id, as in the tags of its calls.
        index: its number in the drive, from the first one asked for; of warm-ups, less than 0.
        started_s: in seconds from the start of the drive.
        seconds: from its start to its end.
        ok: whether every call was answered.
    """

    run: str
    index: int
    started_s: float
    seconds: float
    ok: bool


class Observer(Protocol):
    """Who is told as a drive goes on. Called on the event loop: must be quick, must not raise."""

    def call_changed(self, record: CallRecord) -> None:
        """A call has entered its state; the record is the same object from call to call."""

    def run_ended(self, record: RunRecord) -> None:
        """A run has ended; its calls that still wait will never be sent."""


@dataclass(slots=True)
class Ledger:
    """An observer that keeps everything, so that what was measured outlives an interruption.

    Attributes:
        calls: every call of the runs that were started, in the order in which they appeared.
        runs: the runs that have ended, in the order in which they did.
    """

    calls: list[CallRecord] = field(default_factory=list)
    runs: list[RunRecord] = field(default_factory=list)

    def call_changed(self, record: CallRecord) -> None:
        """Note a call when it appears; later states show in the same object."""
        if record.state is CallState.WAITING:
            self.calls.append(record)

    def run_ended(self, record: RunRecord) -> None:
        """Note a run, and forget its calls that were never sent."""
        self.runs.append(record)
        if not record.ok:
            self.calls = [
                call
                for call in self.calls
                if call.run != record.run or call.state is not CallState.WAITING
            ]


@dataclass(frozen=True, slots=True)
class Result:
    """What a drive measured.

    Attributes:
        calls: every call that was sent, done or failed.
        runs: every run, in the order in which they ended.
        seconds: the whole drive.
    """

    calls: Sequence[CallRecord]
    runs: Sequence[RunRecord]
    seconds: float

    @property
    def failures(self) -> list[CallRecord]:
        """The calls that failed, each with its reason."""
        return [record for record in self.calls if record.state is CallState.FAILED]
