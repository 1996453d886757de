"""Every live run of every client, and what each event changes in steps-to-execution.

Source: paper sections 3.1 and 3.3 (least step across workflows, client ids); invariants 7
to 11 and 36 to 39. An event costs O(E log V) of the one or two runs it moves plus O(changed
agents), never a walk over all runs; only `forget` and the views are longer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kvflow.errors import UsageError
from kvflow.graph import Graph
from kvflow.hints import Tag
from kvflow.runs.counts import StepChange, StepCounts
from kvflow.runs.live import Arrival, Key, LiveRun
from kvflow.runs.roster import Roster


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the table's memory (invariant 39).

    Attributes:
        clients: most clients with live runs; the one that was quiet for longest goes.
        runs_per_client: most live runs of a client; the one that was quiet for longest goes.
        agents_per_client: most agents with steps of a client; its runs go, oldest first, until
            one is left. Also the most agents of a graph.
        workflows: most registered graphs; further ones are refused, because what an operator
            registered must not go for what callers claim.
        silent_ticks: ticks without an event, and without a call in flight, after which a run
            expires.
    """

    clients: int = 256
    runs_per_client: int = 1024
    agents_per_client: int = 1024
    workflows: int = 1024
    silent_ticks: int = 300


@dataclass(slots=True)
class Counters:
    """What happened so far; none of these ever falls."""

    unexpected: int = 0  # calls that the graph of their run did not expect
    unknown: int = 0  # calls without given steps whose agent no graph of theirs has
    expired: int = 0  # runs that fell silent
    evicted: int = 0  # runs that went because of a limit


def _nobody_listens(_: Key) -> None: ...


def _nobody_looks(_: Key, __: Mapping[str, int]) -> None: ...


class RunView(NamedTuple):
    """One live run, for people to look at."""

    client: str
    workflow: str
    run: str
    in_flight: Mapping[str, int]  # calls by agent
    steps: Mapping[str, int]
    idle_ticks: int  # since its last event, if no call is in flight
    is_expected: bool  # it has not begun, or stands for the next one as well


class RunTable:
    """Live runs by (client, workflow, run), and the least steps of each client's agents.

    Calls are known by id, so that duplicate events, and late ones of calls that the table no
    longer knows, are harmless no-ops (invariant 11). Calls in flight are the engine's to
    bound: each must be finished or aborted.

    A call of a workflow without a registered graph and without given steps, or of an agent that
    the graph does not have, has 0 while in flight and no steps of its own after.

    Every event returns what it changed, and only that.

    Args:
        limits: what bounds its memory.
        on_end: told of each run that is over, whether ended, expired or dropped; must not call
            back. One without a graph is over only when its client says so, for nothing else tells
            it from one that goes on.
        on_move: told of each run whose steps are others than before, and of the steps that its
            agents have in it now, none once it is gone; must not call back.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        on_end: Callable[[Key], None] = _nobody_listens,
        on_move: Callable[[Key, Mapping[str, int]], None] = _nobody_looks,
    ) -> None:
        self.limits = limits or Limits()
        self.counters = Counters()
        self._graphs: dict[tuple[str, str], Graph] = {}
        self._served: dict[str, Graph] = {}
        self._roster = Roster()
        self._counts = StepCounts()
        self._calls: dict[str, LiveRun] = {}
        self._on_end = on_end
        self._on_move = on_move
        self._tick = 0

    def register(self, client: str, workflow: str, graph: Graph) -> None:
        """Runs of this workflow that begin from now on walk this graph.

        Raises:
            UsageError: more agents or workflows than the limits allow.
        """
        most = self.limits
        if len(graph.agents) > most.agents_per_client:
            raise UsageError(
                f"workflow {workflow!r} has {len(graph.agents)} agents",
                f"a client may have at most {most.agents_per_client}",
                "split the workflow",
            )
        if (client, workflow) not in self._graphs and len(self._graphs) >= most.workflows:
            raise UsageError(
                f"workflow {workflow!r} is one too many",
                f"{most.workflows} workflows are registered",
                "delete those that are no longer used",
            )
        self._graphs[client, workflow] = graph

    def serve(self, workflow: str, graph: Graph) -> None:
        """Runs of this workflow walk this graph whoever their client is.

        A graph that a client registered under the same name goes before it, for that client.
        """
        self._served[workflow] = graph

    def graph(self, client: str, workflow: str) -> Graph | None:
        """The graph that a client's runs of this workflow walk, if there is one."""
        return self._graphs.get((client, workflow), self._served.get(workflow))

    def forget(self, client: str, workflow: str) -> list[StepChange]:
        """Drop a workflow's graph and its live runs. O(runs of the client)."""
        self._graphs.pop((client, workflow), None)
        self._remove(r for r in self._roster.of_client(client) if r.key.workflow == workflow)
        return self._counts.drain()

    def arrive(self, tag: Tag, call_id: str) -> list[StepChange]:
        """A call is here, from its queueing on. No-op while a call with this id is in flight."""
        if call_id in self._calls:
            return []
        live = self._open(Key(tag.client, tag.workflow, tag.run))
        graph = self.graph(tag.client, tag.workflow)
        if graph is not None and live.lacks_walk(tag, graph):
            live.begin(graph, is_heir=self._succeed(live.key))
        self._calls[call_id] = live
        arrival = live.arrive(call_id, tag)
        self.counters.unexpected += arrival is Arrival.UNEXPECTED
        self.counters.unknown += arrival is Arrival.UNKNOWN
        self._update(live)
        self._bound_agents(tag.client)
        return self._counts.drain()

    def finish(self, call_id: str) -> list[StepChange]:
        """A call has its answer. No-op for an unknown id."""
        if (live := self._calls.pop(call_id, None)) is None:
            return []
        live.finish(call_id)
        self._close(live)
        return self._counts.drain()

    def abort(self, call_id: str) -> list[StepChange]:
        """A call went away unanswered: as if it had not arrived. No-op for an unknown id."""
        if (live := self._calls.pop(call_id, None)) is None:
            return []
        live.abort(call_id)
        self._close(live)
        return self._counts.drain()

    def end(self, client: str, run: str, expect_next: bool = True) -> list[StepChange]:
        """The client says that a run is over; its calls in flight are no longer followed.

        With `repeat` the next run is expected in its place, until its first call or expiry, unless
        the client says that none follows.
        """
        for live in self._roster.named(client, run):
            if expect_next:
                self._release_calls(live)
                self._end(live)
            else:
                self._remove([live])
        return self._counts.drain()

    def tick(self) -> list[StepChange]:
        """Time passes: runs that were silent for too long expire (invariant 38)."""
        self._tick += 1
        silent = list(self._roster.silent_until(self._tick - self.limits.silent_ticks))
        self.counters.expired += len(silent)
        self._remove(live for key in silent if (live := self._roster.get(key)) is not None)
        return self._counts.drain()

    def least(self, client: str, agent: str) -> int | None:
        """Steps of an agent: the least over its client's live runs; None without any."""
        return self._counts.least(client, agent)

    def waiting(self, client: str, agent: str) -> int:
        """How many live runs hold that least value."""
        return self._counts.waiting(client, agent)

    def steps_in(self, key: Key) -> Mapping[str, int]:
        """Steps of the agents of one run, whatever others there are; none if it is not live."""
        live = self._roster.get(key)
        return {} if live is None else live.published

    def steps(self) -> Iterator[StepChange]:
        """Steps of every agent that has any, as changes from nothing. O(agents)."""
        return iter(self._counts)

    @property
    def live_runs(self) -> int:
        """How many runs are live. O(clients)."""
        return self._roster.runs

    def runs(self) -> Iterator[RunView]:
        """Every live run, oldest client and oldest run first. O(runs)."""
        for live in self._roster:
            yield RunView(
                *live.key,
                in_flight=live.in_flight(),
                steps=live.published,
                idle_ticks=self._roster.silence(live, self._tick),
                is_expected=live.expects_next,
            )

    def _open(self, key: Key) -> LiveRun:
        if (live := self._roster.get(key)) is not None:
            return live
        if not self._roster.count(key.client) and len(self._roster) >= self.limits.clients:
            self._evict(self._roster.of_client(self._roster.oldest_client()))
        elif self._roster.count(key.client) >= self.limits.runs_per_client:
            self._evict([self._roster.oldest_run(key.client)])
        live = LiveRun(key)
        self._roster.add(live)
        return live

    def _succeed(self, key: Key) -> bool:
        """A run begins: the first that stands for one not begun gives way to it, if any does."""
        other = self._roster.next_expected(key.client, key.workflow)
        if other is None or other.walk is None:
            return False
        if other.walk.begun:
            other.walk.follow()
            self._publish(other)
        else:
            self._remove([other])
        return True

    def _close(self, live: LiveRun) -> None:
        """A call of it is over; with the last one goes a run whose final call has its answer."""
        if live.closed:
            self._end(live)
        else:
            self._update(live)

    def _end(self, live: LiveRun) -> None:
        self._on_end(live.key)
        live.end()
        self._update(live)

    def _update(self, live: LiveRun) -> None:
        self._roster.touch(live, self._tick)
        self._publish(live)

    def _publish(self, live: LiveRun) -> None:
        if live.over:
            self._drop(live)
            if live.walk is not None:
                self._on_end(live.key)
            return
        old, new = live.published, live.steps()
        for agent in {**new, **old}:
            if old.get(agent) != new.get(agent):
                self._counts.move(live.key.client, agent, old.get(agent), new.get(agent))
        live.published = new
        if old != new:
            self._on_move(live.key, new)
        self._roster.note_expectation(live)

    def _remove(self, lives: Iterable[LiveRun]) -> None:
        for live in lives:
            self._on_end(live.key)
            self._drop(live)

    def _drop(self, live: LiveRun) -> None:
        self._release_calls(live)
        for agent, steps in live.published.items():
            self._counts.move(live.key.client, agent, steps, None)
        self._on_move(live.key, {})
        self._roster.remove(live)

    def _evict(self, lives: list[LiveRun]) -> None:
        self.counters.evicted += len(lives)
        self._remove(lives)

    def _bound_agents(self, client: str) -> None:
        too_many = self.limits.agents_per_client
        while self._counts.agents(client) > too_many and self._roster.count(client) > 1:
            self._evict([self._roster.oldest_run(client)])

    def _release_calls(self, live: LiveRun) -> None:
        for call_id in live.call_ids:
            del self._calls[call_id]
