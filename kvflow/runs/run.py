"""One run on its way through its graph: a token game.

Source: paper section 3.1 and what it leaves open (paper.md 1.1 a to e, invariants 3 to 6). A
finished call puts a token on each arrow out of its agent; the start of an agent consumes the
tokens on the arrows into it. Between two calls nothing moves, so steps stay what they are.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kvflow.graph import START, Arrow, Graph, edges


@dataclass(slots=True)
class _Moved:
    """What a start moved, on balance: put back if none of its calls is answered."""

    taken: dict[Arrow, None] = field(default_factory=dict)
    given: dict[Arrow, None] = field(default_factory=dict)
    ended: dict[str, "_Activation"] = field(default_factory=dict)  # fan-outs

    def take(self, arrows: Iterable[Arrow]) -> None:
        for arrow in arrows:
            if arrow in self.given:
                del self.given[arrow]
            else:
                self.taken[arrow] = None


@dataclass(slots=True)
class _Activation:
    """One start of an agent, with the calls of its fan-out."""

    room: int  # calls that may still come
    number: int = 0  # among the starts of the run
    finished: int = 0
    over: bool = False  # a successor started: no more calls are expected
    moved: _Moved = field(default_factory=_Moved)

    @property
    def due(self) -> bool:
        return self.room > 0 and not self.over


class Run:
    """One instance of a workflow. A new one awaits its first call: START has finished.

    Args:
        graph: of the workflow. With `repeat`, the run goes on into the next one, either by calls
            of its own or, when they come under another name, by `follow`.

    Attributes:
        graph: the one in force; without `repeat` once the next run has begun elsewhere.
        in_flight: calls that arrived and did not finish, by agent; no zeros.
        unexpected: calls so far that the graph did not expect. Never falls.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.in_flight: dict[str, int] = {}
        self.unexpected = 0
        # A dict stands for an ordered set, here and below: its order is that of the events.
        self._tokens: dict[Arrow, None] = dict.fromkeys(graph.arrows(START))
        self._activations: dict[str, _Activation] = {}
        self._last_start: dict[str, int] = {}
        self._starts = 0
        self._answered = False

    @classmethod
    def at(cls, graph: Graph, done: Iterable[str] = (), running: Iterable[str] = ()) -> "Run":
        """A run as a person describes it: which agents are done, which are running.

        Each agent consumes its tokens, those that are done put theirs. Named agents need no
        predecessors and contradict nobody: they only show that START is behind the run, so of
        other tokens only START's are cleared.

        Args:
            graph: of the workflow.
            done: agents in the order in which their calls finished.
            running: agents with a call in flight.

        Raises:
            ValueError: a name that is no agent of the graph.
        """
        run = cls(graph)
        for name in done:
            run._place(name)
            run._put(name)
            run._answered = True
        for name in running:
            run._activations[name] = run._place(name)
            run.in_flight[name] = 1
        return run

    @property
    def begun(self) -> bool:
        """Whether a call has arrived, other than aborted ones."""
        return self._answered or bool(self.in_flight)

    @property
    def expects_next(self) -> bool:
        """Whether it stands for a run that has not begun: itself, or the one that follows."""
        return not self.begun or any(target == START for _, target in self._tokens)

    @property
    def ended(self) -> bool:
        """Whether nothing of it is in flight and nothing more is expected."""
        return not self.in_flight and not self._tokens and not self._due()

    def steps(self) -> dict[str, int]:
        """Steps-to-execution of every agent, in declaration order. See `Graph.steps`."""
        return self.graph.steps(self._tokens, self.in_flight, self._due())

    def arrive(self, agent: str) -> bool:
        """A call of the agent is here: the agent counts as 0 from now on.

        It belongs to the fan-out of an earlier call while that has room. Otherwise the agent
        starts: its own tokens are consumed, the alternatives to those that it needed are cleared,
        the fan-outs of its predecessors are over. An agent that the graph did not expect starts all
        the same, as what happens is a fact; then all other tokens are cleared, unless calls are in
        flight.

        Returns:
            Whether the graph expected it.

        Raises:
            ValueError: no agent of the graph.
        """
        self._require(agent)
        surprises = self.unexpected
        activation = self._activations.get(agent)
        if activation is not None and activation.due:
            activation.room -= 1
            if activation.finished >= self.graph.agents[agent].fan_out[0]:
                self._drop(self.graph.arrows(agent))  # the barrier shuts until this one is back
        else:
            self._start(agent)
        self.in_flight[agent] = self.in_flight.get(agent, 0) + 1
        return self.unexpected == surprises

    def finish(self, agent: str) -> None:
        """A call of the agent has its answer.

        Tokens go out when none of its calls is in flight and its fan-out has made the least
        number of calls, or is over (paper.md invariant 5).

        Raises:
            ValueError: no call of the agent is in flight.
        """
        activation = self._depart(agent)
        activation.finished += 1
        activation.moved = _Moved()
        self._answered = True
        self._settle(agent, activation)

    def abort(self, agent: str) -> None:
        """A call of the agent went away without an answer: it is as if it had not arrived.

        If its start has other calls, one more may come. If it has none, the tokens that the start
        moved go back, except into agents that have started since, and the fan-outs that it ended
        go on. `unexpected` keeps what it counted.

        Raises:
            ValueError: no call of the agent is in flight.
        """
        activation = self._depart(agent)
        if agent in self.in_flight or activation.finished:
            activation.room += 1
            self._settle(agent, activation)
            return
        del self._activations[agent]
        self._drop(activation.moved.given)
        for arrow in activation.moved.taken:
            if not self._started_since(activation, arrow):
                self._tokens[arrow] = None
        for name, ended in activation.moved.ended.items():
            ended.over = any(self._started_since(activation, a) for a in self.graph.arrows(name))

    def follow(self) -> None:
        """The next run has begun under another name: this one no longer stands for it."""
        self._leave(START, _Moved())
        self.graph = self.graph.once

    def _require(self, agent: str) -> None:
        if agent not in self.graph.agents:
            raise ValueError(f"{agent!r} is no agent of this workflow")

    def _due(self) -> list[str]:
        return [name for name, activation in self._activations.items() if activation.due]

    def _started_since(self, activation: _Activation, arrow: Arrow) -> bool:
        return self._last_start.get(arrow[1], 0) > activation.number

    def _place(self, name: str) -> _Activation:
        self._require(name)
        activation = _Activation(room=0)
        self._begin_again(name, activation.moved)
        if not self.graph.is_ready(name, self._tokens):
            self._drop(self.graph.arrows(START))
        self._leave(name, activation.moved)
        return activation

    def _start(self, agent: str) -> None:
        self._starts += 1
        activation = _Activation(self.graph.agents[agent].fan_out[1] - 1, self._starts)
        if agent in self.in_flight:
            # Two starts overlap. Which of their calls is answered, and which aborted, is not
            # known, so both stand or are undone together.
            before = self._activations[agent]
            activation.finished, activation.moved = before.finished, before.moved
        moved = activation.moved
        self._begin_again(agent, moved)
        expected = self.graph.is_ready(agent, self._tokens)
        self._leave(agent, moved)
        self.unexpected += not expected
        if not expected and not self.in_flight:
            moved.take(self._tokens)
            self._tokens = {}
            self._end_fan_outs(self._activations, moved)
        self._last_start[agent] = self._starts
        self._activations[agent] = activation

    def _begin_again(self, agent: str, moved: _Moved) -> None:
        """With `repeat`: START finishes if that, and only that, lets the agent start."""
        taken = self._taken_by(START)
        if not taken or self.graph.is_ready(agent, self._tokens):
            return
        entries = [arrow for arrow in self.graph.arrows(START) if arrow not in self._tokens]
        after = [arrow for arrow in self._tokens if arrow not in taken] + entries
        if self.graph.is_ready(agent, after):
            self._leave(START, moved)
            self._last_start[START] = self._starts
            self._tokens |= dict.fromkeys(entries)
            moved.given |= dict.fromkeys(entries)

    def _leave(self, target: str, moved: _Moved) -> None:
        """The target starts: its tokens go, and so do those that its start rules out."""
        taken = self._taken_by(target)
        self._drop(taken)
        moved.take(taken)
        self._end_fan_outs(self._predecessors(target), moved)

    def _taken_by(self, target: str) -> list[Arrow]:
        """Tokens on arrows into the target, and on the alternatives that its start rules out."""
        taken: dict[Arrow, None] = {}
        for arrow in [arrow for arrow in self._tokens if arrow[1] == target]:
            source = arrow[0]
            choices = [(source, out.target) for out in self.graph.out(source) if out.p is not None]
            taken[arrow] = None
            if target == START or (arrow in choices and self._must_have_come(arrow)):
                taken.update(dict.fromkeys([*choices, (source, START)]))
        return [arrow for arrow in taken if arrow in self._tokens]

    def _must_have_come(self, arrow: Arrow) -> bool:
        """Whether its target cannot start without it: else the source may have chosen otherwise."""
        return not self.graph.is_ready(arrow[1], self._tokens.keys() - {arrow})

    def _predecessors(self, target: str) -> Iterable[str]:
        if target == START:
            return filter(self.graph.is_terminal, self.graph.agents)
        return [edge.source for edge in edges(self.graph.agents[target].trigger)]

    def _end_fan_outs(self, agents: Iterable[str], moved: _Moved) -> None:
        for agent in agents:
            other = self._activations.get(agent)
            if other is not None and other.due:
                other.over = True
                moved.ended[agent] = other

    def _depart(self, agent: str) -> _Activation:
        if agent not in self.in_flight:
            raise ValueError(f"no call of {agent!r} is in flight")
        self.in_flight[agent] -= 1
        if not self.in_flight[agent]:
            del self.in_flight[agent]
        return self._activations[agent]

    def _settle(self, agent: str, activation: _Activation) -> None:
        enough = activation.finished >= self.graph.agents[agent].fan_out[0] or not activation.due
        if activation.finished and enough and agent not in self.in_flight:
            self._put(agent)

    def _put(self, agent: str) -> None:
        self._tokens |= dict.fromkeys(self.graph.arrows(agent))

    def _drop(self, arrows: Iterable[Arrow]) -> None:
        for arrow in arrows:
            self._tokens.pop(arrow, None)
