"""What one turn of one arm leaves behind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from kvflow.bench.control import Counts
from kvflow.bench.trace import Trace
from kvflow.bench.usage import GpuUse
from kvflow.client.exchange import Answer
from kvflow.client.records import CallRecord, CallState, Ledger, RunRecord

Said = tuple[int, ...] | str
Answers = Mapping[tuple[int, int], Said]
"""What was answered, by (run, call); in token ids where the server gives them."""


@dataclass(slots=True, kw_only=True)
class Trial:
    """One turn of one arm.

    Attributes:
        arm: whose turn it was.
        repeat: in which repeat, from 0.
        calls: that were measured, done or failed.
        runs: likewise.
        seconds: that measuring took.
        warm_rounds: rounds of the workflow before that, until hits had settled.
        counts: what the server counted meanwhile; None without kvflow.
        cpu_s: processor time that the server took meanwhile; None if that is not known.
        gpus: how busy the GPUs were meanwhile.
        plain: answers to the plain chats beside it.
        trace: one more run, watched closely; None but of the last turn.
        cold: answers to the prompts that all arms get, with nothing in the cache.
        again: answers to the same prompts once the cache was warm.
        whole: whether all its runs were measured, whatever came after them.
        failure: why the turn could not be finished; empty if it was.
    """

    arm: str
    repeat: int
    calls: Sequence[CallRecord] = ()
    runs: Sequence[RunRecord] = ()
    seconds: float = 0.0
    warm_rounds: int = 0
    counts: Counts | None = None
    cpu_s: float | None = None
    gpus: GpuUse = field(default_factory=GpuUse)
    plain: Sequence[Answer] = field(default_factory=tuple)
    trace: Trace | None = None
    cold: Answers | None = None
    again: Answers | None = None
    whole: bool = False
    failure: str = ""

    @property
    def answers(self) -> list[Answer]:
        """To the calls that are done."""
        return [call.answer for call in self.calls if call.answer is not None]

    @property
    def run_s(self) -> float:
        """Mean seconds of a whole run."""
        return fmean(run.seconds for run in self.runs if run.ok)

    @property
    def ttft_s(self) -> float:
        """Mean seconds to the first token."""
        return fmean(answer.ttft_s for answer in self.answers)


@dataclass(frozen=True, slots=True)
class Hits:
    """Where the reusable part of prompts was found, in tokens.

    Attributes:
        reusable: all of the prompts but their new dynamic parts.
        device: of these, found in device memory.
        host: of these, loaded from host memory.
    """

    reusable: int
    device: int
    host: int

    @property
    def device_share(self) -> float:
        """Share of the reusable tokens that was on the device."""
        return self.device / self.reusable if self.reusable else 0.0

    @property
    def host_share(self) -> float:
        """Share of the reusable tokens that was on the host."""
        return self.host / self.reusable if self.reusable else 0.0


def hits(calls: Sequence[CallRecord]) -> Hits:
    """Where the reusable tokens of some calls were found; the device comes first in a prompt."""
    reusable = device = host = 0
    for call in calls:
        if call.answer is None or call.answer.prompt_tokens is None:
            continue
        can = max(0, call.answer.prompt_tokens - call.call.dynamic_tokens)
        on_device = min(can, call.answer.cached_device or 0)
        reusable += can
        device += on_device
        host += min(can - on_device, call.answer.cached_host or 0)
    return Hits(reusable, device, host)


def what_was_said(calls: Sequence[CallRecord]) -> Answers:
    """The answers of some calls by their place in the workload."""
    return {
        (call.call.run, call.call.index): call.answer.output_ids or call.answer.text
        for call in calls
        if call.answer is not None
    }


def first_failure(ledger: Ledger) -> str:
    """Why a drive did not go through: its first call that failed, or nothing."""
    return next((call.error for call in ledger.calls if call.state is CallState.FAILED), "")
