"""Random workflows for property tests, cycles and nesting included."""

from pathlib import Path
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from kvflow.recipe.convert import to_graph
from kvflow.recipe.load import Loaded
from kvflow.recipe.model import Recipe

After = Any
"""What `after` may hold, as data: a name, {agent, p}, {any: [...]} or {all: [...]}."""


def loaded_of(data: dict[str, Any]) -> Loaded:
    """A recipe of agents with fixed_tokens, without the checks that need a file."""
    recipe = Recipe.model_validate({"kvflow": 1, "name": "random", **data})
    return Loaded(recipe, Path("random.yaml"), to_graph(recipe), MappingProxyType({}))


@st.composite
def workflows(draw: st.DrawFn, alternatives: bool = True) -> dict[str, Any]:
    """Data of a recipe; each source has some arrows with p, which leave a rest or not."""
    names = [f"a{number}" for number in range(draw(st.integers(1, 5)))]
    share = {
        (source, target): 0.25 if alternatives and draw(st.integers(0, 3)) == 0 else None
        for source in ("start", *names)
        for target in names
    }

    def leaf(target: str) -> st.SearchStrategy[After]:
        return st.sampled_from(("start", *names)).map(
            lambda source: (
                source
                if share[source, target] is None
                else {"agent": source, "p": share[source, target]}
            )
        )

    def nest(parts: st.SearchStrategy[After]) -> st.SearchStrategy[After]:
        some = st.lists(parts, min_size=1, max_size=3)
        return st.one_of(
            some.map(lambda listed: {"any": listed}), some.map(lambda listed: {"all": listed})
        )

    agents = {
        name: {
            "fixed_tokens": 8,
            "after": draw(st.recursive(leaf(name), nest, max_leaves=4)),
            "fan_out": draw(st.sampled_from(("1", "2", "1..3"))),
            "memory": draw(st.sampled_from(("none", "conversation"))),
        }
        for name in names
    }
    most = draw(st.integers(1, 24))
    return {"agents": agents, "workload": {"max_calls": most, "dynamic_tokens": "3..9"}}


def holds(after: After, sources: set[str]) -> bool:
    """Whether tokens from these sources satisfy `after`: the definition, word for word."""
    if isinstance(after, str):
        return after in sources
    if "agent" in after:
        return after["agent"] in sources
    if "any" in after:
        return any(holds(part, sources) for part in after["any"])
    return all(holds(part, sources) for part in after["all"])
