"""Warming a server: every agent's fixed prefix is computed once, before anybody asks for it.

What is computed goes to the host tier, so the first round of a workflow loads its prefixes instead
of computing them. No run of an application is opened by it, and none is left.
"""

from collections.abc import AsyncIterator, Collection
from uuid import uuid4

from kvflow.client.exchange import ChatPrompt, IdsPrompt, Message, Prompt
from kvflow.client.prompts import FixedParts, fixed_parts
from kvflow.client.server import Server
from kvflow.client.tagging import WARMING_CLIENT, tag
from kvflow.recipe.load import Loaded


async def warm(
    loaded: Loaded, server: Server, agents: Collection[str] | None = None
) -> AsyncIterator[str]:
    """Have the server compute the fixed prefixes of a recipe's agents, one after another.

    Args:
        loaded: the recipe.
        server: where.
        agents: whose; None for all.

    Yields:
        The name of each agent before its prefix is computed.

    Raises:
        KvflowError: the server does not answer, or cannot take the recipe's prompts.
    """
    specs = loaded.recipe.agents
    ids = any(spec.prompt is None for spec in specs.values())
    fixed = fixed_parts(loaded, await server.vocabulary() if ids else range(0))
    for agent, spec in specs.items():
        if agents is not None and agent not in agents:
            continue
        yield agent
        params = tag(
            WARMING_CLIENT,
            loaded.recipe.name,
            run=uuid4().hex,
            agent=agent,
            fixed_tokens=spec.fixed_tokens,
            final=True,
            steps={agent: 0},  # given, so that it is no unexpected call of the recipe's graph
        )
        await server.ask(_prompt(fixed, agent), max_tokens=1, what=f"warming {agent}", tag=params)


def _prompt(fixed: FixedParts, agent: str) -> Prompt:
    """The fixed part, and as little as can be beyond it."""
    part = fixed[agent]
    if isinstance(part, str):
        return ChatPrompt((Message("system", part), Message("user", ".")))
    return IdsPrompt((*part, part[0]))
