"""Whose a prefix is: the agents of applications, and what was warmed for them.

Pure. A server that was warmed (`kvflow serve --warm`) knows each agent a second time, as one of a
client that has no run and never will have: it gets no line and no name of its own where an
application's agent has taken its place.
"""

from collections.abc import Iterable

from kvflow.client.tagging import WARMING_CLIENT
from kvflow.frames import AgentState, Node

_WARMING = f"{WARMING_CLIENT}/"


def nearest_first(agent: AgentState) -> tuple[float, str, str]:
    """Sorts by steps; those without a live run come last."""
    steps = float("inf") if agent.steps is None else agent.steps
    return steps, agent.client, agent.agent


def applications(agents: Iterable[AgentState]) -> list[AgentState]:
    """All but those that merely warmed, who speaks first first."""
    return sorted((one for one in agents if not _merely_warmed(one)), key=nearest_first)


def only_client(agents: Iterable[AgentState]) -> str | None:
    """The application that need not be named, for there is no other."""
    clients = {agent.client for agent in agents if not _merely_warmed(agent)}
    return clients.pop() if len(clients) == 1 else None


def warmed(agents: Iterable[AgentState]) -> list[AgentState]:
    """What was warmed and is no application's prefix so far."""
    known = list(agents)
    taken = {agent.end for agent in applications(known)}
    return [one for one in known if _merely_warmed(one) and one.end not in taken]


def warmed_words(agents: Iterable[AgentState]) -> str:
    """A line about what was warmed for nobody so far; empty if nothing was."""
    names = ", ".join(agent.agent for agent in warmed(agents))
    return f"warmed, and asked for by nobody yet: {names}" if names else ""


def names(node: Node, client: str | None = None) -> list[str]:
    """The agents whose fixed prefix ends at a node.

    Args:
        node: of the tree.
        client: is left out before the names of its agents.
    """
    own = [name for name in node.agents if not name.startswith(_WARMING)]
    if not own:
        return [f"{name.removeprefix(_WARMING)} (warmed)" for name in node.agents]
    return [name.removeprefix(f"{client}/") for name in own]


def _merely_warmed(agent: AgentState) -> bool:
    return agent.client == WARMING_CLIENT and agent.steps is None
