"""When a load has to start, so that it is neither late nor far too early.

Two things are learned from what happens, both counted in forwards: what the link carries, and how
soon an agent speaks once it is so many steps away. Forwards are the one clock that all ranks share:
they run the same batches in the same order, however long each takes.
"""

from typing import NamedTuple

Owner = tuple[str, str]
"""Client and agent."""

FARTHEST = 8
"""Steps beyond which an agent is too far away to foretell when it will speak."""

_IN_TIME = 1.5  # leads before the last moment that a load beyond the depth starts
_TOO_EARLY = 4.0  # leads before its agent speaks that a load would only stand around
_GRACE = 4  # forwards, since what is learned in so few is not that exact
_ROUNDING = 2  # forwards that pass between a load's start, its end, and the pass that sees it
_SLOWLY = 0.125
_LINK_MEMORY = 0.25
_LESS, _LEAST_OF_SEEN = 0.875, 0.5
_MOST_OWNERS = 4096


class LinkPace:
    """What the link carries during a forward."""

    def __init__(self) -> None:
        self._tokens_a_forward: float | None = None

    def loaded(
        self, tokens: int, forwards: int, *, idle: bool = False, waited: bool = False
    ) -> None:
        """A copy to the device is complete.

        Args:
            tokens: of it.
            forwards: while it was on its way.
            idle: whether there were times without a forward, so that it took longer than it seems.
            waited: whether a forward had to wait for it, which made that a long one. How much less
                the link carries than it seems is felt for.
        """
        seen = tokens / max(1, forwards)
        known = seen if self._tokens_a_forward is None else self._tokens_a_forward
        if waited:
            self._tokens_a_forward = max(_LEAST_OF_SEEN * seen, _LESS * min(known, seen))
        elif idle:
            self._tokens_a_forward = min(known, seen)
        else:
            self._tokens_a_forward = known + _LINK_MEMORY * (seen - known)

    def forwards(self, tokens: int) -> float | None:
        """Forwards until a copy is complete that could start now; None while nothing is known."""
        if self._tokens_a_forward is None:
            return None
        return 1 + tokens / self._tokens_a_forward  # the end is noted by the forward after it

    def tokens(self, forwards: float) -> int | None:
        """Tokens that arrive meanwhile; None while nothing is known."""
        known = self._tokens_a_forward
        return None if known is None else int(max(0.0, forwards) * known)


class Approach(NamedTuple):
    """How far away an agent is, in forwards; None where that is not known.

    Attributes:
        left: until it speaks; below 0 where it took less before.
        from_nearer: that it takes to speak from one step nearer.
    """

    left: float | None = None
    from_nearer: float | None = None


class Queue(NamedTuple):
    """What the link has to carry before a prefix, in tokens.

    Attributes:
        now: for all agents that are nearer, or as near and before it.
        then: of these, for those that will not have spoken once it is a step nearer.
    """

    now: int = 0
    then: int = 0


_ALONE = Queue()


class Foresight:
    """How soon agents speak, by what they did before from as many steps away."""

    def __init__(self) -> None:
        # Of an agent that is on its way: at which forward it came so near.
        self._since: dict[Owner, dict[int, int]] = {}
        self._learned: dict[Owner, dict[int, float]] = {}

    def steps_changed(self, owner: Owner, steps: int | None, now: int) -> None:
        """An agent is as near as that from now on; it speaks at 0. None: it may never. O(1).

        Args:
            owner: the agent, of whichever client.
            steps: its steps-to-execution.
            now: forwards so far.
        """
        stages = self._since.pop(owner, {})
        if steps == 0:
            self._spoke(owner, stages, now)
        elif steps is not None and steps <= FARTHEST:
            nearer = {far: since for far, since in stages.items() if far > steps}
            self._since[owner] = {**nearer, steps: now}

    def approach(self, owner: Owner, now: int) -> Approach:
        """How far away an agent is."""
        stages = self._since.get(owner)
        if not stages:
            return Approach()
        steps, learned = min(stages), self._learned.get(owner, {})
        took = learned.get(steps)
        left = None if took is None else took - (now - stages[steps])
        return Approach(left, learned.get(steps - 1))

    def _spoke(self, owner: Owner, stages: dict[int, int], now: int) -> None:
        learned = self._learned[owner] = self._learned.pop(owner, {})  # now the last to be dropped
        for steps, since in stages.items():
            took = now - since
            known = learned.get(steps, took)
            # Believed at once when it is sooner, slowly when it is later: being late costs more.
            learned[steps] = took if took < known else known + _SLOWLY * (took - known)
        if len(self._learned) > _MOST_OWNERS:
            del self._learned[next(iter(self._learned))]


def due(
    tokens: int, steps: int, depth: int, approach: Approach, link: LinkPace, queue: Queue = _ALONE
) -> int:
    """How much of a prefix has to be on its way now, from its beginning.

    Within the depth all of it, unless it would stand around for long. Beyond it only what the link
    cannot carry any more once the agent is a step nearer: what is loaded early takes the room of
    what would have stayed, and has to be loaded back in turn.

    Args:
        tokens: of the prefix that are not there.
        steps: of its agent.
        depth: steps from which on a load starts even if nothing is known yet.
        approach: how far away the agent is.
        link: what carries it.
        queue: what it has to carry before.

    Returns:
        Tokens, from 0 to `tokens`.
    """
    if steps <= depth:
        lead = link.forwards(queue.now + tokens)
        if approach.left is None or lead is None:
            return tokens
        return tokens if approach.left <= _TOO_EARLY * lead + _GRACE else 0
    if approach.left is None or approach.from_nearer is None:
        return 0
    carried = link.tokens(approach.from_nearer - _ROUNDING)
    if carried is None or carried >= queue.then + tokens:
        return 0
    urgent = min(tokens, queue.then + tokens - carried)
    lead = link.forwards(queue.now + urgent) or 0.0
    return urgent if approach.left - approach.from_nearer <= _IN_TIME * lead else 0
