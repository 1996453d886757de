"""Walking a planned run: which calls may start, given which have finished."""

from collections.abc import Sequence

from kvflow.graph import Graph
from kvflow.workload.calls import Call


class Walk:
    """One run in progress. It says what may start; the caller says what has finished.

    A call may start once the finished ones among its predecessors satisfy its agent's trigger:
    all of a barrier, the first one of a branch. What it extends must be finished, too.

    Args:
        graph: of the workflow.
        calls: the run, as `plan_run` gives it.
    """

    def __init__(self, graph: Graph, calls: Sequence[Call]) -> None:
        self._graph = graph
        self._waiting = {call.index: call for call in calls}
        self._unfinished = {call.index for call in calls}

    def ready(self) -> list[Call]:
        """The calls that may start now and were not returned before, in the order of the plan."""
        ready = [call for call in self._waiting.values() if self._may_start(call)]
        for call in ready:
            del self._waiting[call.index]
        return ready

    def finished(self, call: Call) -> None:
        """Note that a call has been answered.

        Raises:
            KeyError: it is not of this run, or had finished before.
        """
        self._unfinished.remove(call.index)

    @property
    def done(self) -> bool:
        """Whether every call has finished."""
        return not self._unfinished

    def is_last(self, call: Call) -> bool:
        """Whether a call is the only one that has not finished: the run ends with it."""
        return self._unfinished == {call.index}

    def _may_start(self, call: Call) -> bool:
        if call.extends in self._unfinished:
            return False
        tokens = {
            (feed.source, call.agent)
            for feed in call.feeds
            if self._unfinished.isdisjoint(feed.calls)
        }
        return self._graph.is_ready(call.agent, tokens)
