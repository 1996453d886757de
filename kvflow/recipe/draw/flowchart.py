"""A graph for Mermaid, which draws it in Markdown: GitHub, GitLab, most wikis."""

from collections.abc import Iterator, Mapping
from itertools import count

from kvflow.graph import START, All, Edge, Graph, Trigger
from kvflow.recipe.draw.words import label


def mermaid(graph: Graph, steps: Mapping[str, int] | None = None) -> str:
    """A Mermaid flowchart: barriers as diamonds, p on its arrows, the ends of a run dotted.

    Args:
        graph: of any kind.
        steps: by agent, written beside the names.
    """
    return "\n".join(["flowchart TD", *(f"  {line}" for line in _lines(graph, steps))]) + "\n"


def _lines(graph: Graph, steps: Mapping[str, int] | None) -> Iterator[str]:
    # Ids of our own: a name such as `end` or `a.b` means something else to Mermaid.
    ids = {START: "start"} | {name: f"agent{n}" for n, name in enumerate(graph.agents)}
    gates = (f"gate{number}" for number in count())
    yield 'start(("start"))'
    for name, agent in graph.agents.items():
        yield f'{ids[name]}["{label(agent, steps)}"]'
    for name, agent in graph.agents.items():
        yield from _into(ids[name], agent.trigger, ids, gates, is_whole=True)
    ends = [name for name in graph.agents if graph.is_terminal(name)]
    if ends:
        yield 'finish(("end"))'
        yield from (f"{ids[name]} -.-> finish" for name in ends)
        if graph.repeat:
            yield "finish -.-> start"


def _into(
    target: str, trigger: Trigger, ids: dict[str, str], gates: Iterator[str], is_whole: bool
) -> Iterator[str]:
    """The arrows of a trigger. Several arrows into an agent are a branch; the rest needs a gate."""
    if isinstance(trigger, Edge):
        share = "" if trigger.p is None else f"|{trigger.p:g}|"
        yield f"{ids[trigger.source]} -->{share} {target}"
        return
    word = "all" if isinstance(trigger, All) else "any"
    if len(trigger.parts) > 1 and not (word == "any" and is_whole):
        gate = next(gates)
        yield f'{gate}{{"{word}"}}'
        yield f"{gate} --> {target}"
        target = gate
    for part in trigger.parts:
        yield from _into(target, part, ids, gates, is_whole=is_whole and len(trigger.parts) == 1)
