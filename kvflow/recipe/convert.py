"""From a recipe to its Agent Step Graph."""

from kvflow.graph import START, Agent, All, Edge, Either, Graph, Trigger
from kvflow.recipe.model import After, AllOf, Alternative, AnyOf, Recipe


def to_graph(recipe: Recipe) -> Graph:
    """The graph of a recipe, agents in the order of the recipe.

    Raises:
        ValueError: the recipe breaks a rule of `kvflow.recipe.check` that the graph needs.
    """
    agents = [
        Agent(name, to_trigger(spec.after), (spec.fan_out.low, spec.fan_out.high))
        for name, spec in recipe.agents.items()
    ]
    return Graph(agents, recipe.repeat)


def to_trigger(after: After | None) -> Trigger:
    """What `after` means; nothing means after START."""
    match after:
        case None:
            return Edge(START)
        case Alternative(agent=agent, p=p):
            return Edge(agent, p)
        case AnyOf(any=parts):
            return Either(tuple(map(to_trigger, parts)))
        case AllOf(all=parts):
            return All(tuple(map(to_trigger, parts)))
    return Edge(after)
