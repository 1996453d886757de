"""One run on its way through its graph: a token game.

Source: paper section 3.1 and what it leaves open (invariants 3 to 6). A
finished call puts a token on each arrow out of its agent; the start of an agent consumes the
tokens on the arrows into it. Between two calls nothing moves, so steps stay what they are.
"""

from collections.abc import Iterable

from kvflow.graph import START, Arrow, Graph, edges
from kvflow.runs.activation import Activation, Moved, needed


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
        self._activations: dict[str, Activation] = {}
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
            run._put(name, run._place(name))
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
    def expects_only_next(self) -> bool:
        """Whether it stands for a run that has not begun, and nothing else is expected of it."""
        if not self.begun:
            return True
        only_ends = bool(self._tokens) and all(target == START for _, target in self._tokens)
        return only_ends and not self.in_flight and not self._due()

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
        flight. If it needed one of these, that one's answer is no longer news to it.

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
        number of calls, or is over (invariant 5).

        Raises:
            ValueError: no call of the agent is in flight.
        """
        activation = self._depart(agent)
        activation.finished += 1
        activation.late = min(activation.late, self.in_flight.get(agent, 0))
        activation.moved.clear()
        self._answered = True
        self._settle(agent, activation)

    def abort(self, agent: str) -> None:
        """A call of the agent went away without an answer: it is as if it had not arrived.

        If its start has other calls, one more may come, or none if two starts overlapped. If it
        has none, the tokens that the start moved go back, except into agents that have started
        since, and the fan-outs that it ended go on. But not if an agent that needs its answer has
        started without it: then it was given up, and is not awaited again. `unexpected` keeps what
        it counted.

        Raises:
            ValueError: no call of the agent is in flight.
        """
        activation = self._depart(agent)
        if agent in self.in_flight or activation.finished:
            activation.withdraw(self.graph.agents[agent].fan_out[1])
            self._settle(agent, activation)
        else:
            del self._activations[agent]
            if activation.ahead:
                activation.forget()
            else:
                self._undo(agent, activation)

    def follow(self) -> None:
        """The next run has begun under another name: this one no longer stands for it."""
        self._leave(START, Moved())
        self.graph = self.graph.once

    def _require(self, agent: str) -> None:
        if agent not in self.graph.agents:
            raise ValueError(f"{agent!r} is no agent of this workflow")

    def _due(self) -> list[str]:
        return [name for name, activation in self._activations.items() if activation.due]

    def _started_since(self, activation: Activation, arrow: Arrow) -> bool:
        return self._last_start.get(arrow[1], 0) > activation.number

    def _place(self, name: str) -> Activation:
        self._require(name)
        activation = Activation(room=0)
        self._begin_again(name, activation.moved)
        if not self.graph.is_ready(name, self._tokens):
            self._drop(self.graph.arrows(START))
        self._leave(name, activation.moved)
        return activation

    def _start(self, agent: str) -> None:
        self._starts += 1
        activation = Activation(self.graph.agents[agent].fan_out[1] - 1, self._starts)
        if agent in self.in_flight:
            # Two starts overlap. Which of their calls is answered, and which aborted, is not
            # known, so both stand or are undone together.
            before = self._activations[agent]
            activation.finished, activation.moved = before.finished, before.moved
            activation.late = self.in_flight[agent] if before.over else before.late
        moved = activation.moved
        self._begin_again(agent, moved)
        expected = self.graph.is_ready(agent, self._tokens)
        if not expected:
            self._go_ahead(agent, moved)
        self._leave(agent, moved)
        self.unexpected += not expected
        if not expected and not self.in_flight:
            moved.take(self._tokens)
            self._tokens = {}
            self._end_fan_outs(self._activations, moved)
        self._last_start[agent] = self._starts
        self._activations[agent] = activation

    def _undo(self, agent: str, activation: Activation) -> None:
        moved = activation.moved
        self._drop(moved.given)
        for arrow in moved.taken:
            if not self._started_since(activation, arrow):
                self._tokens[arrow] = None
        for name, ended in moved.ended.items():
            ended.over = any(self._started_since(activation, a) for a in self.graph.arrows(name))
        for source in self._predecessors(agent):
            ahead = self._activations[source].ahead if source in self._activations else {}
            for arrow in [arrow for arrow, by in ahead.items() if by is moved]:
                if not self._started_since(activation, arrow):
                    del ahead[arrow]
        moved.clear()

    def _go_ahead(self, agent: str, moved: Moved) -> None:
        """It starts before those in flight that it needs are done: they will give it nothing."""
        before = dict.fromkeys(name for name in self._predecessors(agent) if name in self.in_flight)
        tokens = {*self._tokens, *((name, agent) for name in before)}
        need = needed(self.graph.agents[agent].trigger, agent, tokens)
        for name in before:
            arrow = (name, agent)
            if need is None or arrow in need:
                others = self._alternatives(name)
                ruled_out = [*others, (name, START)] if arrow in others else [arrow]
                for out in ruled_out:
                    self._activations[name].ahead.setdefault(out, moved)

    def _begin_again(self, agent: str, moved: Moved) -> None:
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

    def _leave(self, target: str, moved: Moved) -> None:
        """The target starts: its tokens go, and so do those that its start rules out."""
        taken = self._taken_by(target)
        self._drop(taken)
        moved.take(taken)
        self._end_fan_outs(self._predecessors(target), moved)

    def _taken_by(self, target: str) -> list[Arrow]:
        """Tokens on arrows into the target, and on the alternatives that its start rules out."""
        taken: dict[Arrow, None] = {}
        for arrow in [arrow for arrow in self._tokens if arrow[1] == target]:
            choices = self._alternatives(arrow[0])
            taken[arrow] = None
            if target == START or (arrow in choices and self._must_have_come(arrow)):
                taken.update(dict.fromkeys([*choices, (arrow[0], START)]))
        return [arrow for arrow in taken if arrow in self._tokens]

    def _alternatives(self, source: str) -> list[Arrow]:
        return [(source, out.target) for out in self.graph.out(source) if out.p is not None]

    def _must_have_come(self, arrow: Arrow) -> bool:
        """Whether its target cannot start without it: else the source may have chosen otherwise."""
        return not self.graph.is_ready(arrow[1], self._tokens.keys() - {arrow})

    def _predecessors(self, target: str) -> Iterable[str]:
        if target == START:
            return filter(self.graph.is_terminal, self.graph.agents)
        return [edge.source for edge in edges(self.graph.agents[target].trigger)]

    def _end_fan_outs(self, agents: Iterable[str], moved: Moved) -> None:
        for agent in agents:
            other = self._activations.get(agent)
            if other is not None and not other.over:
                other.over = True
                moved.ended[agent] = other

    def _depart(self, agent: str) -> Activation:
        if agent not in self.in_flight:
            raise ValueError(f"no call of {agent!r} is in flight")
        self.in_flight[agent] -= 1
        if not self.in_flight[agent]:
            del self.in_flight[agent]
        return self._activations[agent]

    def _settle(self, agent: str, activation: Activation) -> None:
        enough = activation.finished >= self.graph.agents[agent].fan_out[0] or not activation.due
        if activation.finished and enough and agent not in self.in_flight:
            self._put(agent, activation)

    def _put(self, agent: str, activation: Activation) -> None:
        for arrow in self.graph.arrows(agent):
            if (by := activation.ahead.pop(arrow, None)) is None:
                self._tokens[arrow] = None
            else:
                by.take([arrow])

    def _drop(self, arrows: Iterable[Arrow]) -> None:
        for arrow in arrows:
            self._tokens.pop(arrow, None)
