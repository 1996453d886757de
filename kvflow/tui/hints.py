"""What clients told a server that was of no use, in words. Such calls get default policy."""

from kvflow.frames import Counters
from kvflow.tui.words import plural


def unused(counters: Counters) -> int:
    """How often a client said what made no sense to the server."""
    ignored = sum(counters.bad_hints.values())
    return ignored + counters.unknown_agents + counters.other_prompt


def told(counters: Counters) -> list[str]:
    """A sentence for each way in which hints were wrong, the most frequent first."""
    ignored = counters.bad_hints.items()
    ways = [
        *((number, "hint", f"ignored: {reason.replace('_', ' ')}") for reason, number in ignored),
        (counters.unknown_agents, "call", "of agents that no workflow of theirs has"),
        (counters.other_prompt, "call", "with another prompt than was registered"),
        (counters.unexpected_calls, "call", "that the workflow of their run did not expect"),
    ]
    ways.sort(key=lambda way: -way[0])
    return [f"{plural(number, noun)} {how}" for number, noun, how in ways if number]
