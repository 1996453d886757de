"""The tagged calls that SGLang has in hand, and what their tags say about the tree.

A call is known from its arrival in the waiting queue to its end, whatever the end is. Its tag
moves the runs (`kvflow.runs`), and together with its prompt it says where its agent's fixed prefix
ends (docs/engine.md). All of it follows from broadcast requests, so every rank sees the same.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kvflow import hints
from kvflow.engine.agent_prompts import AgentPrompts, Namespace
from kvflow.engine.marks import Tail
from kvflow.hints import Tag
from kvflow.recipe.convert import to_graph
from kvflow.recipe.model import Recipe
from kvflow.runs import Key, RunTable, StepChange

Author = str | Tail
_NO_NAMESPACE = Namespace()


@dataclass(slots=True)
class Call:
    """One tagged call in flight.

    Attributes:
        id: SGLang's request id.
        tag: what it says of itself.
        boundary: tokens of its prompt that its agent's next calls will ask for again, whole
            pages; None while that is not known.
        tail: whose conversation it would go on with.
        converses: whether its agent holds any.
        run_is_over: whether its run has ended without it.
    """

    id: str
    tag: Tag
    boundary: int | None
    tail: Tail
    converses: bool
    run_is_over: bool = False

    @property
    def author(self) -> Author:
        """Whose the nodes are that it creates: its own, or the conversation's."""
        return self.tail if self.converses else self.id


@dataclass(slots=True)
class Counts:
    """What came in; none of these ever falls.

    Attributes:
        tagged: calls with a usable tag; `untagged`: calls without any.
        bad_hints: hints that were ignored, by reason.
    """

    tagged: int = 0
    untagged: int = 0
    bad_hints: Counter[str] = field(default_factory=Counter)


class Calls:
    """Tagged calls in flight, the runs they belong to, and their agents' prompts.

    Args:
        page_size: tokens a page; boundaries are rounded down to it.

    Attributes:
        table: the runs; `prompts`: what is known of agents' prompts.
        counts: what came in.
    """

    def __init__(self, page_size: int) -> None:
        self._calls: dict[str, Call] = {}
        self._of_run: dict[tuple[str, str], dict[str, Call]] = {}  # whose runs have not ended
        self._ended: list[Key] = []
        self._moved: dict[Key, Mapping[str, int]] = {}
        self.prompts = AgentPrompts(page_size)
        self.table = RunTable(on_end=self._ended.append, on_move=self._moved.__setitem__)
        self.counts = Counts()

    def serve(
        self, recipe: Recipe, prefixes: Mapping[str, Sequence[int]], client: str | None = None
    ) -> None:
        """Runs of this workflow that begin from now on walk its graph.

        Args:
            recipe: the workflow.
            prefixes: token ids of its agents' fixed prefixes, as far as they are known.
            client: whose runs; None: of every client without a recipe of its own by this name.

        Raises:
            UsageError: more agents or workflows than the limits allow.
        """
        graph = to_graph(recipe)
        if client is None:
            self.table.serve(recipe.name, graph)
        else:
            self.table.register(client, recipe.name, graph)
            self.prompts.forget(client, recipe.name)
        memory = {agent: spec.memory for agent, spec in recipe.agents.items()}
        converses = {agent: told == "conversation" for agent, told in memory.items() if told}
        self.prompts.register(client, recipe.name, prefixes, converses)

    def get(self, call_id: str) -> Call | None:
        """A tagged call in flight."""
        return self._calls.get(call_id)

    def in_flight(self) -> Iterable[Call]:
        """All of them, oldest first."""
        return self._calls.values()

    def arrive(
        self,
        call_id: str,
        custom_params: object,
        prompt: Sequence[int] | None,
        namespace: Namespace = _NO_NAMESPACE,
        *,
        again: bool = False,
    ) -> list[StepChange]:
        """A call is here. Nothing happens while one with this id is (it was retracted).

        Args:
            call_id: SGLang's request id.
            custom_params: whatever the request carried.
            prompt: its token ids; None of one that is refused, from which nothing is learned.
            namespace: what sets its KV apart.
            again: it was retracted, and has been counted before.
        """
        if call_id in self._calls:
            return []
        tag, bad = hints.parse(custom_params)
        if not again:
            self._count(tag, bad)
        if tag is None:
            return []
        boundary, converses = None, False
        if prompt is not None:
            boundary, converses = self.prompts.read(tag, prompt, namespace)
        tail = Tail(tag.client, tag.agent, *namespace, tag.workflow, tag.run)
        call = self._calls[call_id] = Call(call_id, tag, boundary, tail, converses)
        self._of_run.setdefault((tag.client, tag.run), {})[call_id] = call
        return self.table.arrive(tag, call_id)

    def _count(self, tag: Tag | None, bad: Iterable[hints.BadHint]) -> None:
        for hint in bad:
            self.counts.bad_hints[hint.reason.value] += 1
        if tag is None:
            self.counts.untagged += 1
        else:
            self.counts.tagged += 1

    def drain_ended(self) -> list[Key]:
        """Runs that are over since this was asked last."""
        ended = self._ended.copy()
        self._ended.clear()
        return ended

    def drain_moved(self) -> dict[Key, Mapping[str, int]]:
        """Runs whose steps have changed since this was asked last, and their agents' steps now."""
        moved = self._moved.copy()
        self._moved.clear()
        return moved

    def run_ended(self, client: str, run: str) -> None:
        """A run is over, in whatever workflows: its calls in flight outlive it. O(these)."""
        for call in self._of_run.pop((client, run), {}).values():
            call.run_is_over = True

    def finish(self, call_id: str) -> list[StepChange]:
        """A call has its answer. Nothing happens for an unknown one."""
        self._forget(call_id)
        return self.table.finish(call_id)

    def abort(self, call_id: str) -> list[StepChange]:
        """A call went away unanswered. Nothing happens for an unknown one."""
        self._forget(call_id)
        return self.table.abort(call_id)

    def _forget(self, call_id: str) -> None:
        call = self._calls.pop(call_id, None)
        if call is None or call.run_is_over:
            return
        run = call.tag.client, call.tag.run
        del self._of_run[run][call_id]
        if not self._of_run[run]:
            del self._of_run[run]
