"""Random Agent Step Graphs, the named workflows of the design, and plain oracles for steps."""

from collections import Counter
from collections.abc import Collection, Iterable

from hypothesis import strategies as st

from kvflow.graph import MAX_STEPS, START, Agent, All, Arrow, Edge, Either, Graph, Trigger, edges

NAMES = "abcdef"
_FAR = dict.fromkeys((START, *NAMES), MAX_STEPS)


def sequence(length: int, repeat: bool = False) -> Graph:
    """a0, a1, ... one after the other."""
    rest = [Agent(f"a{i}", Edge(f"a{i - 1}")) for i in range(1, length)]
    return Graph([Agent("a0"), *rest], repeat)


def cycle(length: int) -> Graph:
    """a0, a1, ... and back to a0."""
    first = Agent("a0", Either((Edge(START), Edge(f"a{length - 1}"))))
    return Graph([first, *(Agent(f"a{i}", Edge(f"a{i - 1}")) for i in range(1, length))])


def peer(repeat: bool = False) -> Graph:
    """Planner, one to four executors, expresser, reviewer that may send back."""
    return Graph(
        [
            Agent("planner"),
            Agent("executor", Edge("planner"), (1, 4)),
            Agent("expresser", Either((Edge("executor"), Edge("reviewer", 0.3)))),
            Agent("reviewer", Edge("expresser")),
        ],
        repeat,
    )


@st.composite
def graphs(
    draw: st.DrawFn,
    *,
    barriers: bool = True,
    alternatives: bool = True,
    fan_outs: bool = True,
) -> Graph:
    """Graphs of up to six agents: cycles, self-loops, nested triggers, several entries, repeat."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    kinds = (All, Either) if barriers else (Either,)
    triggers = {name: draw(_triggers(names, kinds)) for name in names}
    shares = draw(_shares(triggers)) if alternatives else {}
    fan_out = st.sampled_from([(1, 1), (1, 1), (1, 3), (2, 3), (2, 2)])
    return Graph(
        (
            Agent(name, _with_shares(t, name, shares), draw(fan_out) if fan_outs else (1, 1))
            for name, t in triggers.items()
        ),
        repeat=draw(st.booleans()),
    )


@st.composite
def _triggers(
    draw: st.DrawFn, names: str, kinds: tuple[type[All] | type[Either], ...], depth: int = 0
) -> Trigger:
    if depth == 3 or draw(st.integers(0, 2)) == 0:
        return Edge(draw(st.sampled_from([START, *names])))
    kind = draw(st.sampled_from(kinds))
    inner = _triggers(names, kinds, depth + 1)
    return kind(tuple(draw(inner) for _ in range(draw(st.integers(1, 3 - depth)))))


@st.composite
def _shares(draw: st.DrawFn, triggers: dict[str, Trigger]) -> dict[Arrow, float]:
    arrows = sorted({(e.source, name) for name, t in triggers.items() for e in edges(t)})
    chosen = [arrow for arrow in arrows if draw(st.booleans())]
    per_source = Counter(source for source, _ in chosen)
    whole = {source: draw(st.sampled_from([1.0, 0.5])) for source in per_source}
    return {arrow: whole[arrow[0]] / per_source[arrow[0]] for arrow in chosen}


def _with_shares(trigger: Trigger, target: str, shares: dict[Arrow, float]) -> Trigger:
    if isinstance(trigger, Edge):
        return Edge(trigger.source, shares.get((trigger.source, target)))
    return type(trigger)(tuple(_with_shares(part, target, shares) for part in trigger.parts))


@st.composite
def moments(draw: st.DrawFn, graph: Graph) -> tuple[set[Arrow], set[str], set[str]]:
    """Any tokens, calls in flight and due agents: also ones that no run comes to."""
    arrows = [arrow for source in (START, *graph.agents) for arrow in graph.arrows(source)]
    names = list(graph.agents)
    tokens = {arrow for arrow in arrows if draw(st.booleans())}
    in_flight = draw(st.sets(st.sampled_from(names), max_size=2))
    due = draw(st.sets(st.sampled_from(names), max_size=1))
    return tokens, in_flight, due


def fixpoint(
    graph: Graph, tokens: Collection[Arrow], in_flight: Collection[str], due: Collection[str] = ()
) -> dict[str, int]:
    """The least fixpoint of the steps equations, by iteration from zero."""
    ends = [name for name in graph.agents if graph.is_terminal(name)] if graph.repeat else []
    values = dict.fromkeys((START, *graph.agents), 0)
    while True:
        new = {START: min((_edge(end, START, tokens, values) for end in ends), default=MAX_STEPS)}
        for name, agent in graph.agents.items():
            value = min(1 + _eval(agent.trigger, name, tokens, values), MAX_STEPS)
            new[name] = 0 if name in in_flight else min(value, 1) if name in due else value
        if new == values:
            del new[START]
            return new
        values = new


def _edge(source: str, target: str, tokens: Collection[Arrow], values: dict[str, int]) -> int:
    return 0 if (source, target) in tokens else values[source]


def _eval(trigger: Trigger, name: str, tokens: Collection[Arrow], values: dict[str, int]) -> int:
    if isinstance(trigger, Edge):
        return _edge(trigger.source, name, tokens, values)
    choose = max if isinstance(trigger, All) else min
    return choose(_eval(part, name, tokens, values) for part in trigger.parts)


class TokenGame:
    """The rules of a run, played by whoever holds the tokens.

    Written without the code under test: the graph only answers what its edges are.
    """

    def __init__(self, graph: Graph, tokens: Iterable[Arrow]) -> None:
        self.graph = graph
        self.tokens = set(tokens)

    def is_ready(self, name: str) -> bool:
        """Whether the agent may start now, by START's next finish if need be."""
        return self.holds(name) or self._begun_again().holds(name)

    def ready(self) -> list[str]:
        """Agents that may start now."""
        return [name for name in self.graph.agents if self.is_ready(name)]

    def start(self, name: str) -> bool:
        """Consume the agent's tokens; first START's, if it is only ready by them: then True."""
        begins_again = not self.holds(name) and self.is_ready(name)
        if begins_again:
            self.tokens = self._begun_again().tokens
        self._consume(name)
        return begins_again

    def finish(self, name: str) -> None:
        """Put a token on each arrow out of the agent."""
        self.tokens |= self.arrows(name)

    def arrows(self, name: str) -> set[Arrow]:
        """Arrows out of the agent, to START too if the workflow repeats after it."""
        repeats = self.graph.repeat and name != START and self.graph.is_terminal(name)
        return ({(name, START)} if repeats else set()) | {
            (name, out.target) for out in self.graph.out(name)
        }

    def holds(self, name: str) -> bool:
        """Whether the tokens as they are let the agent start."""
        return _eval(self.graph.agents[name].trigger, name, self.tokens, _FAR) == 0

    def _begun_again(self) -> "TokenGame":
        after = TokenGame(self.graph, self.tokens)
        if any(target == START for _, target in self.tokens):
            after._consume(START)
            after.tokens |= self.arrows(START)
        return after

    def _consume(self, target: str) -> None:
        before = frozenset(self.tokens)
        for source, _ in [arrow for arrow in before if arrow[1] == target]:
            self.tokens.discard((source, target))
            rivals = {out.target for out in self.graph.out(source) if out.p is not None}
            others = TokenGame(self.graph, before - {(source, target)})
            if target == START or (target in rivals and not others.holds(target)):
                self.tokens -= {(source, rival) for rival in (*rivals, START)}
