"""Whom a node is kept for: agents with a live run, one of their conversations, or nobody by now.

Pure. Source of the rules: kvflow/policy/rank.py. A frame names the agents whose fixed prefix ends
in a node; the end of a conversation, which holds for a live run alone, has no name there.
"""

from typing import NamedTuple

from kvflow.frames import AgentState, Frame, Node, Why
from kvflow.graph import MAX_STEPS
from kvflow.tui.owners import applications
from kvflow.tui.store import Store
from kvflow.tui.words import plural

_MOST_AGENTS = 4  # named one by one


class Claim(NamedTuple):
    """Whom a node that ranks by steps is kept for.

    Attributes:
        users: the agents whose fixed prefix passes through the node, the nearest first.
        of_nobody: these are all, and none has a live run: it ranks as untagged KV does.
        of_a_conversation: a live run's conversation gives the node its rank.
        through: what passes through the node.
    """

    users: list[AgentState]
    of_nobody: bool
    of_a_conversation: bool
    through: str


def claim(store: Store, frame: Frame, node: Node) -> Claim:
    """Whom a node is kept for. O(nodes below it)."""
    names = {name for one in (node, *store.tree.below(node.id)) for name in one.agents}
    known = [agent for agent in frame.agents if f"{agent.client}/{agent.agent}" in names]
    untagged = frame.untagged_steps
    users = sorted(
        applications(known) or known, key=lambda one: untagged if one.steps is None else one.steps
    )
    idle = node.why is Why.STEPS and all(agent.steps is None for agent in known)
    of_nobody = idle and bool(known) and node.steps == untagged
    all_told = store.tree.complete and len(known) == len(names)
    of_a_conversation = idle and all_told and not of_nobody
    through = _through(users, "A fixed prefix" if names else "A fixed prefix or a conversation")
    return Claim(
        users,
        of_nobody,
        of_a_conversation,
        "A live run's conversation" if of_a_conversation else through,
    )


def _through(users: list[AgentState], anonymous: str) -> str:
    if not users:
        return anonymous
    named = ", ".join(f"{one.client}/{one.agent} ({when(one)})" for one in users[:_MOST_AGENTS])
    more = f" and {len(users) - _MOST_AGENTS} more" if len(users) > _MOST_AGENTS else ""
    return f"The fixed prefix of {named}{more}"


def when(agent: AgentState) -> str:
    """When an agent needs its prefix."""
    if agent.steps is None:
        return "in no live run"
    if agent.steps == 0:
        return soon(0)
    seldom = ", which seldom comes true: nothing is prefetched for it" if agent.doubted else ""
    return f"{soon(agent.steps)}{seldom}"


def soon(steps: int) -> str:
    """Steps as a time that is to come."""
    return f"in {distance(steps)}" if steps else "now"


def distance(steps: int) -> str:
    """Steps in words. The greatest number also stands for what no path leads to in this run."""
    return plural(steps, "step") if steps < MAX_STEPS else f"{steps} steps or more, if ever"
