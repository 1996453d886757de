"""Any interleaving of events against all live runs recomputed, and determinism."""

import subprocess
import sys
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from support.run_table import Driver, driver
from support.step_oracles import graphs

from kvflow.graph import MAX_STEPS, Agent, Edge, Graph
from kvflow.hints import Tag
from kvflow.runs import Limits
from kvflow.runs.live import Key, LiveRun

FAR = MAX_STEPS


DETERMINISM = """
from support.step_oracles import peer
from kvflow.hints import Tag
from kvflow.runs import Limits, RunTable
table = RunTable(Limits(runs_per_client=3, silent_ticks=4))
table.register("app", "w", peer(repeat=True))
agents = ["planner", "executor", "expresser", "reviewer", "nobody"]
for i in range(300):
    tag = Tag("app", "w", f"r{i * i % 7}", agents[i * 7 % 5])
    print(table.arrive(tag, f"c{i}"), table.finish(f"c{i * 5 % 31}"), table.abort(f"c{i - 9}"))
    print(table.tick() if i % 5 == 0 else list(table.runs()))
"""


def test_table_gives_the_same_changes_whatever_the_hash_seed() -> None:
    """Every tensor-parallel rank must decide the same."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", DETERMINISM],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert "StepChange" in printed.pop()


class Oracle:
    """The same rules over a plain list of live runs; everything is recomputed every time."""

    def __init__(self, silent_ticks: int) -> None:
        self.graphs: dict[tuple[str, str], Graph] = {}
        self.lives: list[LiveRun] = []
        # Those that expect the next run, in that order, and whether nothing else.
        self.awaiting: list[tuple[LiveRun, bool]] = []
        self.last_event: dict[Key, int] = {}
        self.now, self.silent_ticks = 0, silent_ticks

    def arrive(self, tag: Tag, call_id: str) -> None:
        if any(call_id in live.call_ids for live in self.lives):
            return
        key = Key(tag.client, tag.workflow, tag.run)
        live = next((live for live in self.lives if live.key == key), None)
        if live is None:
            live = LiveRun(key)
            self.lives.append(live)
        graph = self.graphs.get(key[:2])
        if graph is not None and live.lacks_walk(tag, graph):
            expected = [e for e in self.awaiting if e[0].key[:2] == key[:2] and e[0] is not live]
            expected.sort(key=lambda e: not e[1])
            for other, _ in expected[:1]:
                assert other.walk is not None
                if other.walk.begun:
                    other.walk.follow()
                else:
                    self.lives.remove(other)
            live.begin(graph, is_heir=bool(expected))
        live.arrive(call_id, tag)
        self.settle(live)

    def depart(self, call_id: str, event: str) -> None:
        for live in self.lives:
            if call_id in live.call_ids:
                getattr(live, event)(call_id)
                if live.closed:
                    live.end()
                self.settle(live)
                return

    def end(self, client: str, run: str, expect_next: bool) -> None:
        for live in list(self.lives):
            if (live.key.client, live.key.run) == (client, run):
                if expect_next:
                    live.end()
                else:
                    self.lives.remove(live)
                self.settle(live)

    def drop(self, client: str, workflow: str) -> None:
        self.graphs.pop((client, workflow), None)
        self.lives = [live for live in self.lives if live.key[:2] != (client, workflow)]
        self.settle(None)

    def tick(self) -> None:
        self.now += 1
        self.lives = [
            live
            for live in self.lives
            if live.call_ids or self.now - self.last_event[live.key] < self.silent_ticks
        ]
        self.settle(None)

    def settle(self, touched: LiveRun | None) -> None:
        if touched is not None:
            self.last_event[touched.key] = self.now
        self.lives = [live for live in self.lives if not live.over]
        expecting = [(live, live.expects_only_next) for live in self.lives if live.expects_next]
        self.awaiting = [entry for entry in self.awaiting if entry in expecting]
        self.awaiting += [entry for entry in expecting if entry not in self.awaiting]

    def steps(self) -> dict[tuple[str, str], int]:
        least: dict[tuple[str, str], int] = {}
        for live in self.lives:
            for agent, steps in live.steps().items():
                key = (live.key.client, agent)
                least[key] = min(steps, least.get(key, steps))
        return least

    def waiting(self, client: str, agent: str) -> int:
        least = self.steps()[client, agent]
        own = [live.steps() for live in self.lives if live.key.client == client]
        return sum(steps.get(agent) == least for steps in own)


CLIENTS, WORKFLOWS, RUNS = ("app", "other"), ("w", "v"), ("r1", "r2", "r3")
APP, W, A_OR_B = st.just("app"), st.just("w"), st.sampled_from("ab")
MAY_GO_ON = Graph([Agent("a"), Agent("b", Edge("a", 0.5))], repeat=True)


@st.composite
def tags(draw: st.DrawFn) -> Tag:
    steps = st.dictionaries(st.sampled_from("abz"), st.integers(0, FAR), max_size=3)
    return Tag(
        draw(st.sampled_from(CLIENTS)),
        draw(st.sampled_from(WORKFLOWS)),
        draw(st.sampled_from(RUNS)),
        draw(st.sampled_from("aaabbbcz")),
        final=draw(st.integers(0, 9)) == 0,
        steps=draw(steps) if draw(st.integers(0, 9)) == 0 else None,
    )


@settings(max_examples=120)
@given(st.data(), st.lists(graphs(), min_size=2, max_size=2))
def test_table_any_interleaving_equals_all_live_runs_recomputed(
    data: st.DataObject, two: list[Graph]
) -> None:
    """Invariants 7 to 11: changes alone rebuild what every live run says, nothing more."""
    d, oracle = Driver(Limits(silent_ticks=2)), Oracle(silent_ticks=2)
    kinds = st.sampled_from(
        ["arrive"] * 6 + ["finish"] * 5 + ["abort"] * 2 + ["end", "tick", "register", "forget"]
    )
    for client, graph in zip(CLIENTS, two, strict=True):
        d.table.register(client, "w", graph)
        oracle.graphs[client, "w"] = graph
    call_ids = st.sampled_from([f"c{i}" for i in range(8)])
    for _ in range(data.draw(st.integers(1, 25))):
        kind = data.draw(kinds)
        name = data.draw(st.sampled_from(CLIENTS)), data.draw(st.sampled_from(WORKFLOWS))
        if kind == "arrive":
            tag, call_id = data.draw(tags()), data.draw(call_ids)
            d.apply(d.table.arrive(tag, call_id))
            oracle.arrive(tag, call_id)
        elif kind in ("finish", "abort"):
            call_id = data.draw(call_ids)
            d.apply(getattr(d.table, kind)(call_id))
            oracle.depart(call_id, kind)
        elif kind == "end":
            run = data.draw(st.sampled_from(RUNS))
            expect_next = data.draw(st.booleans())
            d.apply(d.table.end(name[0], run, expect_next))
            oracle.end(name[0], run, expect_next)
        elif kind == "tick":
            d.apply(d.table.tick())
            oracle.tick()
        elif kind == "register":
            graph = data.draw(st.sampled_from(two))
            d.table.register(*name, graph)
            oracle.graphs[name] = graph
        else:
            d.apply(d.table.forget(*name))
            oracle.drop(*name)
        assert d.known == oracle.steps()
    for client, agent, steps in d.table.steps():
        assert d.table.least(client, agent) == steps
        assert d.table.waiting(client, agent) == oracle.waiting(client, agent)


@settings(max_examples=120)
@given(st.lists(st.builds(Tag, APP, W, st.sampled_from(RUNS), A_OR_B, final=st.booleans())))
def test_table_runs_that_may_go_on_and_runs_that_are_over_give_way_as_recomputed(
    turns: list[Tag],
) -> None:
    """Each turn a run calls, or has the answer to the call before."""
    d, oracle = driver(MAY_GO_ON), Oracle(silent_ticks=2)
    oracle.graphs["app", "w"] = MAY_GO_ON
    in_flight: dict[str, str] = {}
    for number, tag in enumerate(turns):
        if (call_id := in_flight.pop(tag.run, None)) is not None:
            d.finish(call_id)
            oracle.depart(call_id, "finish")
        else:
            in_flight[tag.run] = f"c{number}"
            d.apply(d.table.arrive(tag, f"c{number}"))
            oracle.arrive(tag, f"c{number}")
        assert d.known == oracle.steps()


@settings(max_examples=60)
@given(st.lists(st.tuples(tags(), st.integers(0, 5)), max_size=25), graphs())
def test_table_with_tight_limits_keeps_them_after_any_calls(
    calls: list[tuple[Tag, int]], graph: Graph
) -> None:
    """Invariant 39."""
    limits = Limits(clients=1, runs_per_client=2, agents_per_client=6)
    d = driver(graph, limits)
    for number, (tag, other) in enumerate(calls):
        d.apply(d.table.arrive(replace(tag, run=f"{tag.run}{number % 4}"), f"c{number}"))
        d.apply(d.table.finish(f"c{number - other}"))
        views = list(d.table.runs())
        assert len({view.client for view in views}) <= 1
        assert len(views) <= 2
        assert len(d.steps(tag.client)) <= 6 or len(views) == 1
