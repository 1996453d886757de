"""Why a node is kept, and why one was evicted: in words and numbers, from frames alone.

Pure. Source of the rules: kvflow/policy/rank.py (paper section 1.2; invariants 8 to 10, 18).
"""

from dataclasses import dataclass, field

from kvflow.frames import EvictionRecord, Frame, Node, State, Why
from kvflow.tui.claim import Claim, claim, distance, soon, when
from kvflow.tui.forecast import Forecast, Turn, tier_of
from kvflow.tui.store import Store
from kvflow.tui.words import bytes_of, plural


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
        forecast = Forecast(store.tree, tier_of(node), frame.untagged_spare)
    turn = forecast.turns.get(node_id)
    whose = claim(store, frame, node)
    return Explanation(
        verdict=_verdict(node, turn, _need(node, whose)),
        reasons=(
            _rank_reason(frame, node, whose),
            _turn_reason(store, frame, node, turn),
            _loss_reason(frame, node),
        ),
        numbers={
            "steps": node.steps,
            "why": node.why,
            "locks": node.locks,
            "agents": len(whose.users),
            "nodes_before": turn.nodes if turn else None,
            "tokens_before": turn.tokens if turn else None,
            "free_tokens": _free(frame, node),
            "tree_is_complete": store.tree.complete,
        },
    )


def why_evicted(store: Store, record: EvictionRecord) -> Explanation:
    """Why a node left a tier."""
    untagged = store.frame.untagged_steps if store.frame else record.steps
    ambiguous = record.steps == untagged
    or_nobody = ", or nobody with a live run needed it, which ranks the same" if ambiguous else ""
    rank = {
        Why.SPENT: "a finished call had left it behind, and no other call had matched it since",
        Why.STEPS: f"whoever needs it next was {distance(record.steps)} away{or_nobody}, and "
        "whatever was needed later had gone before it or was in use",
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


def _need(node: Node, whose: Claim) -> str:
    """What a node is kept for, in a few words."""
    if whose.of_nobody:
        return "nobody with a live run needs it"
    if whose.of_a_conversation:
        return f"a conversation goes on {soon(node.steps)}"
    if node.why is Why.STEPS and whose.users and whose.users[0].steps is not None:
        nearest = whose.users[0]
        return f"{nearest.client}/{nearest.agent} needs it {when(nearest)}"
    return _short(node.why, node.steps)


def _verdict(node: Node, turn: Turn | None, need: str) -> str:
    if node.state is State.LOADING:
        return "arriving: it is being copied from the host to the device"
    if node.locks:
        return f"in use: {plural(node.locks, 'lock')} on it, so nothing can evict it now"
    place = "on the host" if node.state is State.HOST else "kept"
    if turn is None:
        return f"{place}: something below it is in use"
    return f"{place}{', and the first to go' if turn.nodes == 0 else ''}: {need}"


def _rank_reason(frame: Frame, node: Node, whose: Claim) -> str:
    if node.why is Why.SPENT:
        return "A finished call left it behind and no other call has matched it: such go first."
    if node.why is Why.UNTAGGED:
        return (
            "No agent's fixed prefix passes through it: it ranks as "
            f"{plural(frame.untagged_steps, 'step')} (untagged_steps)."
        )
    if node.why is Why.ACCESS:
        return "Mode off: the least recently used goes first, whoever may need it."
    idle = " (untagged_steps), for nobody with a live run needs it" if whose.of_nobody else ""
    return f"{whose.through} passes through it: it ranks as {plural(node.steps, 'step')}{idle}."


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
        Why.STEPS: f"needed in {distance(steps)}",
        Why.UNTAGGED: f"untagged, ranks as {plural(steps, 'step')}",
        Why.ACCESS: "by its last access alone",
    }[why]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
