"""Any history of a run against the plain rules of its tokens."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.step_oracles import TokenGame, fixpoint, graphs

from kvflow.graph import START, Arrow, Graph
from kvflow.runs import Run


class PlainRun:
    """The rules of a run as the design words them, without undoing; the oracle for `Run`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.game = TokenGame(graph, [(START, out.target) for out in graph.out(START)])
        self.flying: list[str] = []
        self.seen = dict.fromkeys(graph.agents, 0)  # calls since the agent's last start
        self.finished = dict.fromkeys(graph.agents, 0)
        self.open: set[str] = set()  # agents whose fan-out may go on
        self.skipped: set[Arrow] = set()  # on which the calls in flight will put no token

    def arrive(self, agent: str) -> bool:
        expected = True
        if agent in self.open:
            if self.finished[agent] >= self.graph.agents[agent].fan_out[0]:
                self.game.tokens -= self.game.arrows(agent)
        else:
            expected = self._start(agent)
        self.seen[agent] += 1
        if self.seen[agent] >= self.graph.agents[agent].fan_out[1]:
            self.open.discard(agent)
        self.flying.append(agent)
        return expected

    def _start(self, agent: str) -> bool:
        expected = self.game.is_ready(agent)
        if not expected:
            self.skipped |= self._not_waited_for(agent)
        self.skipped -= self.game.arrows(agent)
        if self.game.start(agent):
            self._end_those_before(START)
        self._end_those_before(agent)
        if not expected and not self.flying:
            self.game.tokens = set()
            self.open = set()
        self.open.add(agent)
        self.seen[agent] = 0
        if agent not in self.flying:
            self.finished[agent] = 0
        return expected

    def _not_waited_for(self, agent: str) -> set[Arrow]:
        """Arrows from calls in flight without which the agent could not start even later on."""
        coming = {(name, agent) for name in self.flying if (name, agent) in self.game.arrows(name)}
        arrows: set[Arrow] = set()
        for arrow in coming:
            without = TokenGame(self.graph, (self.game.tokens | coming) - {arrow})
            rivals = {out.target for out in self.graph.out(arrow[0]) if out.p is not None}
            if not without.holds(agent):
                ruled_out = {*rivals, START} if agent in rivals else {agent}
                arrows |= {(arrow[0], target) for target in ruled_out}
        return arrows

    def _end_those_before(self, target: str) -> None:
        self.open -= {name for name in self.open if (name, target) in self.game.arrows(name)}

    def finish(self, agent: str) -> None:
        self.flying.remove(agent)
        self.finished[agent] += 1
        enough = self.finished[agent] >= self.graph.agents[agent].fan_out[0]
        if agent not in self.flying and (enough or agent not in self.open):
            held_before = self.game.tokens & self.skipped
            self.game.finish(agent)
            self.game.tokens -= self.skipped & self.game.arrows(agent) - held_before
            self.skipped -= self.game.arrows(agent)

    def only_next(self) -> bool:
        """Whether nothing but a run that has not begun is expected."""
        begun = bool(self.flying) or any(self.finished.values()) or any(self.seen.values())
        ends = {target for _, target in self.game.tokens}
        return not begun or (ends == {START} and not self.flying and not self.open)

    def steps(self) -> dict[str, int]:
        return fixpoint(self.graph, self.game.tokens, self.flying, self.open)


@settings(max_examples=150)
@given(st.data(), graphs())
def test_run_any_calls_in_any_order_equal_the_plain_rules(
    data: st.DataObject, graph: Graph
) -> None:
    run, plain = Run(graph), PlainRun(graph)
    for _ in range(data.draw(st.integers(1, 12))):
        if plain.flying and data.draw(st.booleans()):
            agent = data.draw(st.sampled_from(plain.flying))
            run.finish(agent)
            plain.finish(agent)
        else:
            agent = data.draw(st.sampled_from(plain.game.ready() or list(graph.agents)))
            if data.draw(st.integers(0, 3)) == 0:
                agent = data.draw(st.sampled_from(list(graph.agents)))
            assert run.arrive(agent) == plain.arrive(agent)
        assert run.steps() == plain.steps()
        assert run.expects_only_next == plain.only_next()


@st.composite
def histories(draw: st.DrawFn) -> tuple[Graph, list[tuple[str, str]]]:
    """A graph and a history of any arrivals, finishes and aborts."""
    graph = draw(graphs())
    events: list[tuple[str, str]] = []
    flying: list[str] = []
    for _ in range(draw(st.integers(0, 10))):
        kind = draw(st.sampled_from(["arrive", "finish", "abort"])) if flying else "arrive"
        agent = draw(st.sampled_from(list(graph.agents) if kind == "arrive" else flying))
        flying.append(agent) if kind == "arrive" else flying.remove(agent)
        events.append((kind, agent))
    return graph, events


def replay(graph: Graph, events: list[tuple[str, str]]) -> Run:
    run = Run(graph)
    for kind, agent in events:
        getattr(run, kind)(agent)
    return run


@settings(max_examples=150)
@given(st.data(), histories())
def test_abort_of_all_calls_of_an_agent_is_as_if_none_had_arrived(
    data: st.DataObject, history: tuple[Graph, list[tuple[str, str]]]
) -> None:
    graph, events = history
    agents = st.sampled_from(list(graph.agents))
    agent, calls = data.draw(agents), data.draw(st.integers(1, 3))
    without = replay(graph, events)
    assume(agent not in without.in_flight)  # else it is not known which of its calls went
    assume(calls == 1 or ("finish", agent) not in events)  # nor if its fan-out is half answered
    run = replay(graph, [*events, *[("arrive", agent)] * calls, *[("abort", agent)] * calls])
    for later in data.draw(st.lists(agents, max_size=3)):
        assert run.steps() == without.steps()
        assert (run.begun, run.ended) == (without.begun, without.ended)
        assert run.arrive(later) == without.arrive(later)
        run.finish(later)
        without.finish(later)
    assert run.steps() == without.steps()
    assert (run.expects_next, run.ended) == (without.expects_next, without.ended)


@settings(max_examples=150)
@given(histories())
def test_run_any_history_keeps_zero_for_exactly_the_agents_in_flight(
    history: tuple[Graph, list[tuple[str, str]]],
) -> None:
    graph, events = history
    run = replay(graph, events)
    assert [n for n, steps in run.steps().items() if steps == 0] == [
        n for n in graph.agents if n in run.in_flight
    ]
    assert 0 <= run.unexpected <= sum(kind == "arrive" for kind, _ in events)
