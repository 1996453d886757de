"""One start of an agent: the calls of its fan-out, what it moved, and who did not wait for it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from kvflow.graph import All, Arrow, Edge, Trigger


@dataclass(slots=True, eq=False)
class Moved:
    """What a start moved, on balance: put back if none of its calls is answered."""

    taken: dict[Arrow, None] = field(default_factory=dict)
    given: dict[Arrow, None] = field(default_factory=dict)
    ended: dict[str, "Activation"] = field(default_factory=dict)  # fan-outs

    def take(self, arrows: Iterable[Arrow]) -> None:
        """Tokens went from these arrows."""
        for arrow in arrows:
            if arrow in self.given:
                del self.given[arrow]
            else:
                self.taken[arrow] = None

    def clear(self) -> None:
        """None of it can be put back any more; nor is it kept for those that still know of it."""
        self.taken.clear()
        self.given.clear()
        self.ended.clear()


@dataclass(slots=True, eq=False)
class Activation:
    """One start of an agent, with the calls of its fan-out.

    Where starts overlap, it stands for all of them.
    """

    room: int  # calls that may still come
    number: int = 0  # among the starts of the run
    late: int = 0  # calls in flight of earlier starts that were over before this one
    finished: int = 0
    over: bool = False  # a successor started: no more calls are expected
    moved: Moved = field(default_factory=Moved)
    # Arrows on which no token goes out, as a successor started without it; and what it moved.
    ahead: dict[Arrow, Moved] = field(default_factory=dict)

    @property
    def due(self) -> bool:
        """Whether more calls are expected."""
        return self.room > 0 and not self.over

    def forget(self) -> None:
        """It was given up: nothing of it is put back, nor kept."""
        self.moved.clear()
        self.ahead.clear()

    def withdraw(self, most: int) -> None:
        """One of its calls went away, others stay: as many may come as its starts lack.

        If that is all that one start may make, one start is gone. Late calls go first: who goes
        on to the next round has given them up.
        """
        if self.late:
            self.late -= 1
        else:
            self.room = (self.room + 1) % most


def needed(trigger: Trigger, target: str, tokens: Collection[Arrow]) -> set[Arrow] | None:
    """The tokens without which the trigger would not hold; None: it does not hold with them all."""
    if isinstance(trigger, Edge):
        arrow = (trigger.source, target)
        return {arrow} if arrow in tokens else None
    parts = [needed(part, target, tokens) for part in trigger.parts]
    held = [part for part in parts if part is not None]
    if isinstance(trigger, All):
        return {arrow for part in held for arrow in part} if len(held) == len(parts) else None
    return held[0].intersection(*held[1:]) if held else None
