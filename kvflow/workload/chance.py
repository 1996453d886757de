"""Chance that depends on names alone: equal keys draw equally, whatever was drawn before.

Two arms of a bench must walk the same path although their calls finish in another order. So no
generator lives longer than one decision, and every decision has a key of its own.
"""

from collections.abc import Sequence
from math import fsum
from random import Random

from kvflow.graph import Out

Key = str | int


def generator(*key: Key) -> Random:
    """A generator whose stream depends on the key alone, on any machine."""
    return Random("/".join(map(str, key)))


def draw_whole(low: int, high: int, *key: Key) -> int:
    """A whole number from low to high; both ends count."""
    # Only random() is promised to stay the same from one Python to the next.
    return low + int(generator(*key).random() * (high - low + 1))


def draw_arrows(arrows: Sequence[Out], *key: Key) -> list[Out]:
    """The arrows that a finished activation takes.

    Args:
        arrows: all arrows out of one source.
        key: names this activation.

    Returns:
        Every arrow without p and at most one of the alternatives, in the order given.
    """
    alternatives = [arrow for arrow in arrows if arrow.p is not None]
    taken = _draw_one(alternatives, generator(*key).random()) if alternatives else None
    return [arrow for arrow in arrows if arrow.p is None or arrow is taken]


def _draw_one(alternatives: Sequence[Out], at: float) -> Out | None:
    shares = [arrow.p or 0.0 for arrow in alternatives]
    total = fsum(shares)
    if total > 1 - 1e-9:  # shares such as ten times 0.1 are meant to leave no rest
        at *= total
    reached = 0.0
    for arrow, share in zip(alternatives, shares, strict=True):
        reached += share
        if at < reached:
            return arrow
    return None
