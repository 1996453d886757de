"""The prompts of one run: an agent's fixed part, what it extends, and the dynamic part."""

from collections.abc import Mapping, Sequence

from kvflow.client.dynamic import DynamicPart, Heard
from kvflow.client.exchange import Answer, ChatPrompt, IdsPrompt, Message, Prompt
from kvflow.recipe.load import Loaded
from kvflow.workload import Call, fixed_ids

FixedParts = Mapping[str, str | tuple[int, ...]]
"""By agent: the text of its system message, or its token ids."""


def fixed_parts(loaded: Loaded, vocabulary: range) -> FixedParts:
    """The fixed part of every agent's prompt.

    Args:
        loaded: the recipe.
        vocabulary: token ids to draw from; may be empty if every agent has a prompt.
    """
    return {
        name: loaded.prompts[name]
        if spec.prompt is not None
        else tuple(fixed_ids(loaded.recipe, name, vocabulary))
        for name, spec in loaded.recipe.agents.items()
    }


class RunPrompts:
    """Makes the prompts of one run, and remembers what was said in it.

    Args:
        calls: of the run.
        fixed: part of each agent.
        dynamic: makes the rest.
    """

    def __init__(self, calls: Sequence[Call], fixed: FixedParts, dynamic: DynamicPart) -> None:
        self._calls, self._fixed, self._dynamic = calls, fixed, dynamic
        self._ahead: dict[int, str | tuple[int, ...]] = {}
        self._said: dict[int, tuple[Prompt, Answer]] = {}

    async def prepare(self, call: Call) -> None:
        """Make the dynamic part of a call now if nothing that is still to be said enters it."""
        if self._dynamic.is_known_ahead(call):
            self._ahead[call.index] = await self._make_part(call)

    async def prompt(self, call: Call) -> Prompt:
        """The prompt of a call whose predecessors have spoken."""
        part = self._ahead.pop(call.index, None)
        if part is None:
            part = await self._make_part(call)
        if isinstance(part, str):
            return ChatPrompt((*self._messages_before(call), Message("user", part)))
        return IdsPrompt(self._ids_before(call) + part)

    def note(self, call: Call, prompt: Prompt, answer: Answer) -> None:
        """Remember what was said, for the calls that follow."""
        self._said[call.index] = (prompt, answer)

    async def _make_part(self, call: Call) -> str | tuple[int, ...]:
        heard = [
            Heard(self._calls[index].agent, self._said[index][1].text)
            for index in call.predecessors
            if index in self._said  # of a branch, the first part is enough
        ]
        if isinstance(self._fixed[call.agent], str):
            return await self._dynamic.text(call, heard)
        return tuple(await self._dynamic.ids(call, heard))

    def _messages_before(self, call: Call) -> tuple[Message, ...]:
        if call.extends is None:
            return (Message("system", str(self._fixed[call.agent])),)
        prompt, answer = self._said[call.extends]
        assert isinstance(prompt, ChatPrompt)  # an agent's prompts are all of one kind
        return (*prompt.messages, Message("assistant", answer.text))

    def _ids_before(self, call: Call) -> tuple[int, ...]:
        if call.extends is None:
            fixed = self._fixed[call.agent]
            assert not isinstance(fixed, str)
            return fixed
        prompt, answer = self._said[call.extends]
        assert isinstance(prompt, IdsPrompt)
        return prompt.ids + (answer.output_ids or ())
