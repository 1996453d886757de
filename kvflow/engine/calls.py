"""The tagged calls that SGLang has in hand, and what their tags say about the tree.

A call is known from its arrival in the waiting queue to its end, whatever the end is. Its tag
moves the runs (`kvflow.runs`), and together with its prompt it says where its agent's fixed prefix
ends (docs/engine.md). All of it follows from broadcast requests, so every rank sees the same.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kvflow import hints
from kvflow.graph import Graph
from kvflow.hints import Tag
from kvflow.runs import RunTable, StepChange


@dataclass(slots=True)
class Call:
    """One tagged call in flight.

    Attributes:
        id: SGLang's request id.
        tag: what it says of itself.
        boundary: tokens of its prompt that its agent's next calls will ask for again, whole
            pages; None while that is not known.
    """

    id: str
    tag: Tag
    boundary: int | None


class PrefixKey(NamedTuple):
    """Whose fixed prefix it is. No client: of every client that runs the served recipe."""

    client: str | None
    workflow: str
    agent: str


@dataclass(slots=True)
class Counts:
    """What came in; none of these ever falls.

    Attributes:
        tagged: calls with a usable tag; `untagged`: calls without any.
        bad_hints: hints that were ignored, by reason.
        other_prompt: calls whose prompt does not begin with their agent's registered prefix.
    """

    tagged: int = 0
    untagged: int = 0
    other_prompt: int = 0
    bad_hints: Counter[str] = field(default_factory=Counter)


class Calls:
    """Tagged calls in flight, the runs they belong to, and the prefixes of their agents.

    Args:
        page_size: tokens a page; boundaries are rounded down to it.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._calls: dict[str, Call] = {}
        self._prefixes: dict[PrefixKey, array[int]] = {}
        self.table = RunTable()
        self.counts = Counts()

    def serve(self, workflow: str, graph: Graph, prefixes: Mapping[str, Sequence[int]]) -> None:
        """Every client's runs of this workflow walk this graph; its agents begin as given."""
        found = {
            PrefixKey(None, workflow, agent): array("q", token_ids)
            for agent, token_ids in prefixes.items()
        }
        self.table.serve(workflow, graph)
        self._prefixes.update(found)

    def get(self, call_id: str) -> Call | None:
        """A tagged call in flight."""
        return self._calls.get(call_id)

    def in_flight(self) -> Iterable[Call]:
        """All of them, oldest first."""
        return self._calls.values()

    def prefix_tokens(self, workflow: str, agent: str) -> int | None:
        """Length of the registered prefix of an agent of the served recipe."""
        prefix = self._prefixes.get(PrefixKey(None, workflow, agent))
        return None if prefix is None else len(prefix)

    def arrive(
        self, call_id: str, custom_params: object, prompt: Sequence[int]
    ) -> list[StepChange]:
        """A call is here. Nothing happens while one with this id is (it was retracted).

        Args:
            call_id: SGLang's request id.
            custom_params: whatever the request carried.
            prompt: its token ids.
        """
        if call_id in self._calls:
            return []
        tag, bad = hints.parse(custom_params)
        for hint in bad:
            self.counts.bad_hints[hint.reason.value] += 1
        if tag is None:
            self.counts.untagged += 1
            return []
        self.counts.tagged += 1
        self._calls[call_id] = Call(call_id, tag, self._boundary(tag, prompt))
        return self.table.arrive(tag, call_id)

    def finish(self, call_id: str) -> list[StepChange]:
        """A call has its answer. Nothing happens for an unknown one."""
        self._calls.pop(call_id, None)
        return self.table.finish(call_id)

    def abort(self, call_id: str) -> list[StepChange]:
        """A call went away unanswered. Nothing happens for an unknown one."""
        self._calls.pop(call_id, None)
        return self.table.abort(call_id)

    def _boundary(self, tag: Tag, prompt: Sequence[int]) -> int | None:
        tokens = self._prefix_in(tag, prompt)
        if tokens is None:
            if tag.fixed_tokens is None:
                return None
            tokens = min(tag.fixed_tokens, len(prompt))
        return tokens // self._page_size * self._page_size

    def _prefix_in(self, tag: Tag, prompt: Sequence[int]) -> int | None:
        prefix = self._prefixes.get(PrefixKey(None, tag.workflow, tag.agent))
        if prefix is None:
            return None
        if array("q", prompt[: len(prefix)]) == prefix:
            return len(prefix)
        self.counts.other_prompt += 1
        return None
