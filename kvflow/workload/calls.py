"""Which calls a run makes, and what each one waits for.

The path of a run is drawn before its first call: alternatives, fan-outs, lengths and the cut of a
loop depend on (seed, run, agent, activation) and on nothing that happens while it is driven.
"""

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from kvflow.graph import START, Arrow, edges
from kvflow.recipe.load import Loaded
from kvflow.workload.chance import draw_arrows, draw_whole


class Feed(NamedTuple):
    """A token that a call consumed: where it came from."""

    source: str  # an agent, or START
    calls: tuple[int, ...]  # the calls that put it there, by index; none for START


@dataclass(frozen=True, slots=True)
class Call:
    """One request of one agent in one run.

    Attributes:
        run: index of the run; less than 0 for one that only warms up.
        index: position in its run; predecessors have smaller ones.
        agent: who speaks. Its fixed prefix is the same in every call.
        activation: how often the agent had been reached before in this run.
        part: position in the fan-out of this activation.
        feeds: the tokens that the activation consumed.
        extends: index of the call whose prompt and answer this one continues
            (memory: conversation); None: it stands alone.
        dynamic_tokens: length of the prompt after the fixed prefix (and after what it extends).
        output_tokens: most tokens of the answer.
    """

    run: int
    index: int
    agent: str
    activation: int
    part: int
    feeds: tuple[Feed, ...]
    extends: int | None
    dynamic_tokens: int
    output_tokens: int

    @property
    def id(self) -> str:
        """Its name in messages and records: run and index."""
        return f"{self.run}.{self.index}"

    @property
    def predecessors(self) -> tuple[int, ...]:
        """Indices of the calls that the consumed tokens came from."""
        return tuple(index for feed in self.feeds for index in feed.calls)


def plan_run(loaded: Loaded, run: int, seed: int) -> tuple[Call, ...]:
    """The calls of one run, in an order in which predecessors come first.

    The run is walked in waves, each activation taking one: all agents whose trigger holds start
    together, in the order of the recipe, and consume their tokens; then each puts a token on
    every arrow that it takes. Tokens that reach an agent in one wave open one
    activation. The run ends when no trigger holds, or after `workload.max_calls` calls.

    Args:
        loaded: the recipe with its graph.
        run: index of the run; each index draws its own path.
        seed: of the workload.

    Returns:
        The calls; none if START's own alternatives ended the run.
    """
    return _Planner(loaded, run, seed).plan()


class _Planner:
    def __init__(self, loaded: Loaded, run: int, seed: int) -> None:
        self._loaded, self._run, self._seed = loaded, run, seed
        self._calls: list[Call] = []
        self._tokens: dict[Arrow, tuple[int, ...]] = {}
        self._activations: Counter[str] = Counter()
        self._last_of: dict[tuple[str, int], int] = {}

    def plan(self) -> tuple[Call, ...]:
        graph = self._loaded.graph
        self._take_arrows(START, 0, ())
        while wave := [name for name in graph.agents if graph.is_ready(name, self._tokens)]:
            started = [(name, self._activations[name], self._activate(name)) for name in wave]
            if len(self._calls) == self._loaded.recipe.workload.max_calls:
                break
            for name, activation, calls in started:
                self._take_arrows(name, activation, calls)
        return tuple(self._calls)

    def _activate(self, name: str) -> tuple[int, ...]:
        activation = self._activations[name]
        self._activations[name] += 1
        feeds = self._consume(name)
        drawn = draw_whole(
            *self._loaded.graph.agents[name].fan_out, *self._key(name, activation), "fan-out"
        )
        room = self._loaded.recipe.workload.max_calls - len(self._calls)
        return tuple(
            self._add_call(name, activation, part, feeds) for part in range(min(drawn, room))
        )

    def _consume(self, name: str) -> tuple[Feed, ...]:
        sources = dict.fromkeys(
            edge.source for edge in edges(self._loaded.graph.agents[name].trigger)
        )
        return tuple(
            Feed(source, self._tokens.pop((source, name)))
            for source in sources
            if (source, name) in self._tokens
        )

    def _add_call(self, name: str, activation: int, part: int, feeds: tuple[Feed, ...]) -> int:
        spec = self._loaded.recipe.agents[name]
        length = self._loaded.recipe.workload.dynamic_tokens
        index = len(self._calls)
        extends = self._last_of.get((name, part)) if spec.memory == "conversation" else None
        self._last_of[name, part] = index
        key = (*self._key(name, activation), part, "dynamic")
        dynamic = draw_whole(length.low, length.high, *key)
        self._calls.append(
            Call(
                self._run,
                index,
                name,
                activation,
                part,
                feeds,
                extends,
                dynamic,
                spec.output_tokens,
            )
        )
        return index

    def _take_arrows(self, source: str, activation: int, calls: tuple[int, ...]) -> None:
        """Tokens on the arrows taken; an alternative voids what the source chose before."""
        arrows = self._loaded.graph.out(source)
        taken = draw_arrows(arrows, *self._key(source, activation), "next")
        if any(arrow.p is not None for arrow in taken):
            for arrow in arrows:
                if arrow.p is not None:
                    self._tokens.pop((source, arrow.target), None)
        for arrow in taken:
            self._tokens[source, arrow.target] = calls

    def _key(self, name: str, activation: int) -> tuple[str | int, ...]:
        return (self._seed, self._run, name, activation)
