"""Sums over the calls of a drive that goes on: to show them takes as long after any number."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kvflow.client.exchange import Answer
from kvflow.client.records import CallRecord, CallState, RunRecord


@dataclass(slots=True)
class Sums:
    """All calls of one agent, or of all of them.

    Attributes:
        calls: how many are in each state.
        cached_device: tokens of the prompts found in device memory; None if no answer told.
        cached_host: the same of host memory.
    """

    calls: Counter[CallState] = field(default_factory=Counter)
    cached_device: int | None = None
    cached_host: int | None = None
    _ttft_s: float = 0.0

    @property
    def mean_ttft_s(self) -> float | None:
        """Mean time to first token of the calls that are done; None without any."""
        done = self.calls[CallState.DONE]
        return self._ttft_s / done if done else None

    def move(self, before: CallState | None, now: CallState | None) -> None:
        """A call goes from one state to another; None: it was not known, or is forgotten."""
        if before is not None:
            self.calls[before] -= 1
        if now is not None:
            self.calls[now] += 1

    def add(self, answer: Answer) -> None:
        """A call is done."""
        self._ttft_s += answer.ttft_s
        self.cached_device = _plus(self.cached_device, answer.cached_device)
        self.cached_host = _plus(self.cached_host, answer.cached_host)


def _plus(total: int | None, more: int | None) -> int | None:
    return total if more is None else (total or 0) + more


class Tally:
    """An observer that keeps sums only.

    Args:
        agents: of the workflow, in the order of `agents`.

    Attributes:
        all: over all calls.
        agents: by agent.
    """

    def __init__(self, agents: Iterable[str]) -> None:
        self.all = Sums()
        self.agents = {agent: Sums() for agent in agents}
        self._states: dict[str, dict[tuple[str, int], CallState]] = {}  # of runs in flight

    def call_changed(self, record: CallRecord) -> None:
        """Count a call in its new state, and its answer when it is done."""
        call = record.call
        states = self._states.setdefault(record.run, {})
        before = states.get((call.agent, call.index))
        states[call.agent, call.index] = record.state
        for sums in (self.all, self.agents[call.agent]):
            sums.move(before, record.state)
            if record.state is CallState.DONE and record.answer is not None:
                sums.add(record.answer)

    def run_ended(self, record: RunRecord) -> None:
        """Forget the calls of a run that were never sent."""
        for (agent, _), state in self._states.pop(record.run, {}).items():
            if state is CallState.WAITING:
                self.all.move(state, None)
                self.agents[agent].move(state, None)
