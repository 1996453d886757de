"""What is known of agents' prompts: where the fixed prefix ends, and who goes on from its answer.

Best first: the recipe's prompts as SGLang renders them, `fixed_tokens` in the tag,
what the agent's calls have shown. All of it follows from broadcast requests and ticks, so every
rank knows the same.
"""

from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from kvflow.hints import Tag
from kvflow.memory import Conversations
from kvflow.prefixes import Identity, PrefixLearner

Known = TypeVar("Known")


class Namespace(NamedTuple):
    """Calls that differ in any of these share no KV; the extra key has the LoRA adapter in it."""

    extra_key: str | None = None
    cache_salt: str | None = None


class Reading(NamedTuple):
    """What a call's prompt is.

    Attributes:
        boundary: tokens of it that are its agent's fixed prefix, whole pages; None while unknown.
        converses: whether the agent's next call in the same run will extend this one.
    """

    boundary: int | None
    converses: bool


class _Agent(NamedTuple):
    client: str | None  # None: every client that runs the served recipe
    workflow: str
    agent: str


class AgentPrompts:
    """Fixed prefixes and conversations of all agents.

    Args:
        page_size: tokens a page; prefixes are rounded down to whole pages.

    Attributes:
        other_prompt: calls whose prompt does not begin with their agent's registered prefix; never
            falls.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._prefixes: dict[_Agent, array[int]] = {}
        self._memory: dict[_Agent, bool] = {}
        self._learner = PrefixLearner(page_size)
        self._conversations = Conversations()
        self.other_prompt = 0

    def register(
        self,
        client: str | None,
        workflow: str,
        prefixes: Mapping[str, Sequence[int]],
        converses: Mapping[str, bool],
    ) -> None:
        """What a recipe says of its agents.

        Args:
            client: whose recipe; None: of every client without one of its own.
            workflow: its name.
            prefixes: token ids of fixed prefixes, by agent.
            converses: agents of which the recipe says whether they hold conversations.
        """
        for agent, token_ids in prefixes.items():
            self._prefixes[_Agent(client, workflow, agent)] = array("q", token_ids)
        for agent, does in converses.items():
            self._memory[_Agent(client, workflow, agent)] = does

    def forget(self, client: str, workflow: str) -> None:
        """A client's recipe is gone. O(agents)."""
        for known in (self._prefixes, self._memory):
            for agent in [a for a in known if a[:2] == (client, workflow)]:
                del known[agent]

    def prefix_tokens(self, client: str | None, workflow: str, agent: str) -> int | None:
        """Length of an agent's registered prefix."""
        prefix = self._prefixes.get(_Agent(client, workflow, agent))
        return None if prefix is None else len(prefix)

    def read(self, tag: Tag, prompt: Sequence[int], namespace: Namespace) -> Reading:
        """A call is here. O(its prompt), at the speed of a copy and a hash."""
        identity = Identity(tag.client, tag.agent, namespace.cache_salt, namespace.extra_key)
        tokens = self._registered(tag, prompt)
        if tokens is None and tag.fixed_tokens is not None:
            tokens = min(tag.fixed_tokens, len(prompt))
        if tokens is None:
            boundary = self._learner.observe(identity, prompt)
        else:
            boundary = tokens // self._page_size * self._page_size
        return Reading(boundary, self._converses(tag, prompt, identity))

    def tick(self) -> None:
        """A second has passed, in every rank alike."""
        self._learner.tick()

    def run_ended(self, client: str, run: str) -> None:
        """A run is over: another one of its name begins anew."""
        self._conversations.end(client, run)

    def _registered(self, tag: Tag, prompt: Sequence[int]) -> int | None:
        prefix = _of(self._prefixes, tag)
        if prefix is None:
            return None
        if array("q", prompt[: len(prefix)]) == prefix:
            return len(prefix)
        self.other_prompt += 1
        return None

    def _converses(self, tag: Tag, prompt: Sequence[int], identity: Identity) -> bool:
        told = _of(self._memory, tag)
        if told is not None:
            return told
        return self._conversations.observe(identity, tag.run, prompt)


def _of(known: Mapping[_Agent, Known], tag: Tag) -> Known | None:
    """What the client's own recipe says of the agent, else what the served one does."""
    own = known.get(_Agent(tag.client, tag.workflow, tag.agent))
    return known.get(_Agent(None, tag.workflow, tag.agent)) if own is None else own
