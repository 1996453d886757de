"""A graph in words: for what a picture cannot say, and where there is no room for one."""

from collections.abc import Collection, Iterator, Mapping
from math import fsum

from kvflow.graph import MAX_STEPS, Agent, All, Edge, Graph, Trigger, edges
from kvflow.recipe.draw.layout import arrows


def label(agent: Agent, steps: Mapping[str, int] | None = None) -> str:
    """An agent's name with its fan-out and, where they are known, its steps."""
    low, high = agent.fan_out
    calls = f" x{low}" if low == high else f" x{low}..{high}"
    name = agent.name + (calls if high > 1 else "")
    return name if steps is None else f"{name}: {_steps(steps[agent.name])}"


def waits_for(trigger: Trigger) -> str:
    """A trigger as a phrase: `any of executor, reviewer (0.3)`."""
    if isinstance(trigger, Edge):
        return _share(trigger.source, trigger.p)
    if len(trigger.parts) == 1:
        return waits_for(trigger.parts[0])
    parts = [
        f"({waits_for(part)})"
        if not isinstance(part, Edge) and len(part.parts) > 1
        else waits_for(part)
        for part in trigger.parts
    ]
    return f"{'all' if isinstance(trigger, All) else 'any'} of {', '.join(parts)}"


def listing(graph: Graph, steps: Mapping[str, int] | None) -> list[str]:
    """One line for each agent: what it waits for."""
    labels = {name: label(agent, steps) for name, agent in graph.agents.items()}
    wide = max(map(len, labels.values()))
    return [
        f"{labels[name]:{wide}}  after {waits_for(agent.trigger)}"
        for name, agent in graph.agents.items()
    ]


def shares(trigger: Trigger, sources: Collection[str]) -> set[float | None]:
    """The different p of a trigger's edges from these sources."""
    return {edge.p for edge in edges(trigger) if edge.source in sources}


def notes(graph: Graph) -> list[tuple[str, str]]:
    """What a picture cannot say: (topic, text)."""
    found = []
    if back := list(_back(graph)):
        found.append(("back", ", ".join(back)))
    ends = ", ".join(_endings(graph))
    again = ", then the next run starts" if graph.repeat else ""
    found.append(("ends", f"after {ends}{again}" if ends else "never: agents follow each other"))
    down = arrows(graph).down
    for name, agent in graph.agents.items():
        if not _is_plain(agent.trigger) or len(shares(agent.trigger, down[name])) > 1:
            found.append(("waits", f"{name} for {waits_for(agent.trigger)}"))
    return found


def _back(graph: Graph) -> Iterator[str]:
    for target, sources in arrows(graph).back.items():
        for source in sources:
            p = next(out.p for out in graph.out(source) if out.target == target)
            yield _share(f"{source} → {target}", p)


def _endings(graph: Graph) -> Iterator[str]:
    for name in graph.agents:
        if graph.is_terminal(name):
            outs = graph.out(name)
            yield _share(name, 1 - fsum(out.p or 0 for out in outs) if outs else None)


def _is_plain(trigger: Trigger) -> bool:
    """Whether it has no barrier or branch inside another one."""
    return isinstance(trigger, Edge) or all(isinstance(part, Edge) for part in trigger.parts)


def _share(name: str, p: float | None) -> str:
    return name if p is None else f"{name} ({p:.2g})"


def _steps(steps: int) -> str:
    if steps == 0:
        return "running"
    if steps == MAX_STEPS:
        return "out of sight"
    return f"{steps} step{'s' * (steps > 1)}"
