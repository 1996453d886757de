"""Why a node is kept, and why one was evicted: in words and numbers, from frames alone.

Pure. Source of the rules: kvflow/policy/rank.py (paper section 1.2; invariants 8 to 10, 18).
"""

from dataclasses import dataclass, field

from kvflow.frames import AgentState, EvictionRecord, Frame, Node, State, Why
from kvflow.graph import MAX_STEPS
from kvflow.tui.forecast import Forecast, Turn, tier_of
from kvflow.tui.owners import applications
from kvflow.tui.store import Store
from kvflow.tui.words import bytes_of, plural

_MOST_AGENTS = 4  # named one by one


@dataclass(frozen=True, slots=True)
class Explanation:
    """What decides over a node.

    Attributes:
        verdict: one line, such as "kept: demo/planner needs it in 1 step".
        reasons: sentences, the weightiest first.
        numbers: what they are made of, by name, for `--json`.
    """

    verdict: str
    reasons: tuple[str, ...]
    numbers: dict[str, int | float | str | bool | None] = field(default_factory=dict)


def why_kept(store: Store, node_id: int, forecast: Forecast | None = None) -> Explanation | None:
    """Why a node is where it is, and what would go before it; None if it is not in the tree.

    Args:
        store: what is known.
        node_id: the node.
        forecast: of the node's tier and this very frame, if it is at hand; made anew if not.
    """
    node, frame = store.tree.nodes.get(node_id), store.frame
    if node is None or frame is None:
        return None
    if forecast is None:
        forecast = Forecast(store.tree, tier_of(node))
    turn = forecast.turns.get(node_id)
    users = _users(store, frame, node)
    return Explanation(
        verdict=_verdict(node, turn, users),
        reasons=(
            _rank_reason(frame, node, users),
            _turn_reason(store, frame, node, turn),
            _loss_reason(frame, node),
        ),
        numbers={
            "steps": node.steps,
            "why": node.why,
            "locks": node.locks,
            "agents": len(users),
            "nodes_before": turn.nodes if turn else None,
            "tokens_before": turn.tokens if turn else None,
            "free_tokens": _free(frame, node),
            "tree_is_complete": store.tree.complete,
        },
    )


def why_evicted(store: Store, record: EvictionRecord) -> Explanation:
    """Why a node left a tier."""
    untagged = store.frame.untagged_steps if store.frame else record.steps
    rank = {
        Why.SPENT: "a finished call had left it behind, and no other call had matched it since",
        Why.STEPS: f"whoever needs it next was {_distance(record.steps)} away, and whatever "
        "was needed later had gone before it or was in use",
        Why.UNTAGGED: f"no agent that is expected needed it: it ranked as {untagged} steps",
        Why.ACCESS: "mode off: it was the least recently used",
    }[record.why]
    lost = (
        "a host copy is left: it can be loaded"
        if record.outcome == "demoted"
        else "nothing is left of it: it would have to be computed again"
    )
    reasons = [f"{rank}.", f"{lost}."]
    if record.age_s is not None:
        reasons.append(f"it had not been used for {record.age_s:.1f} s.")
    if record.regret:
        reasons.append("a call has asked for it since: it would have been better to keep it.")
    return Explanation(
        verdict=f"{record.outcome} from the {record.tier}: {_short(record.why, record.steps)}",
        reasons=tuple(_sentence(reason) for reason in reasons),
        numbers={
            "seq": record.seq,
            "tier": record.tier,
            "tokens": record.tokens,
            "why": record.why,
            "steps": record.steps,
            "age_s": record.age_s,
            "regret": record.regret,
        },
    )


def _users(store: Store, frame: Frame, node: Node) -> list[AgentState]:
    """The agents whose fixed prefix passes through the node, the nearest first."""
    names = {name for one in (node, *store.tree.below(node.id)) for name in one.agents}
    users = [agent for agent in frame.agents if f"{agent.client}/{agent.agent}" in names]
    untagged = frame.untagged_steps
    return sorted(
        applications(users) or users, key=lambda one: untagged if one.steps is None else one.steps
    )


def _verdict(node: Node, turn: Turn | None, users: list[AgentState]) -> str:
    if node.state is State.LOADING:
        return "arriving: it is being copied from the host to the device"
    if node.locks:
        return f"in use: {plural(node.locks, 'lock')} on it, so nothing can evict it now"
    place = "on the host" if node.state is State.HOST else "kept"
    if turn is None:
        return f"{place}: something below it is in use"
    if turn.nodes == 0:
        return f"{place}, and the first to go: {_short(node.why, node.steps)}"
    if node.why is Why.STEPS and users:
        nearest = users[0]
        return f"{place}: {nearest.client}/{nearest.agent} needs it {_when(nearest)}"
    return f"{place}: {_short(node.why, node.steps)}"


def _rank_reason(frame: Frame, node: Node, users: list[AgentState]) -> str:
    if node.why is Why.SPENT:
        return "A finished call left it behind and no other call has matched it: such go first."
    if node.why is Why.UNTAGGED:
        return (
            "No agent's fixed prefix passes through it: it ranks as "
            f"{plural(frame.untagged_steps, 'step')} (untagged_steps)."
        )
    if node.why is Why.ACCESS:
        return "Mode off: the least recently used goes first, whoever may need it."
    named = ", ".join(f"{one.client}/{one.agent} ({_when(one)})" for one in users[:_MOST_AGENTS])
    more = f" and {len(users) - _MOST_AGENTS} more" if len(users) > _MOST_AGENTS else ""
    through = f"The fixed prefix of {named}{more} passes" if named else "A fixed prefix passes"
    return f"{through} through it: it ranks as {plural(node.steps, 'step')}."


def _turn_reason(store: Store, frame: Frame, node: Node, turn: Turn | None) -> str:
    if turn is None:
        return "It has no turn to be evicted while it, or something below it, is in use."
    free = _free(frame, node)
    before = "nothing goes"
    if turn.nodes:
        go = "goes" if turn.nodes == 1 else "go"
        before = f"{plural(turn.nodes, 'node')} with {plural(turn.tokens, 'token')} {go}"
    known = "" if store.tree.complete else " (of what has been shown so far)"
    return (
        f"Before it {before}{known}, and {plural(free, 'token')} are free: "
        f"it stays until room is needed for more than {plural(turn.tokens + free, 'token')}."
    )


def _loss_reason(frame: Frame, node: Node) -> str:
    size = f"{plural(node.tokens, 'token')} ({bytes_of(node.tokens * frame.bytes_per_token)})"
    if node.state is State.MIRRORED:
        return f"A host copy is there: if it left the device, {size} could be loaded."
    if node.state is State.HOST:
        return f"It is on the host alone: {size} to load when a call needs it."
    if node.state is State.LOADING:
        return f"On its way: {size}."
    return f"No host copy is there: if it left the device, {size} would be computed again."


def _free(frame: Frame, node: Node) -> int:
    pool = frame.host if node.state is State.HOST and frame.host else frame.device
    return pool.free


def _short(why: Why, steps: int) -> str:
    return {
        Why.SPENT: "spent",
        Why.STEPS: f"needed in {_distance(steps)}",
        Why.UNTAGGED: f"untagged, ranks as {plural(steps, 'step')}",
        Why.ACCESS: "by its last access alone",
    }[why]


def _when(agent: AgentState) -> str:
    if agent.steps is None:
        return "in no live run"
    if agent.steps == 0:
        return "now"
    seldom = ", which seldom comes true: nothing is prefetched for it" if agent.doubted else ""
    return f"in {_distance(agent.steps)}{seldom}"


def _distance(steps: int) -> str:
    """Steps in words. The greatest number also stands for what no path leads to in this run."""
    return plural(steps, "step") if steps < MAX_STEPS else f"{steps} steps or more, if ever"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
