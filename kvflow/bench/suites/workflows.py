"""The workflows of the suites, in code: they differ in size, which a recipe file cannot."""

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kvflow.recipe.convert import to_graph
from kvflow.recipe.load import Loaded
from kvflow.recipe.model import Recipe

AGENTS = 10  # in a row, as in all synthetic experiments of the paper


def make(name: str, agents: dict[str, dict[str, Any]], **workload: Any) -> Loaded:
    """A workflow that repeats, as if it had been loaded from a file.

    Args:
        name: of the recipe.
        agents: as in a recipe file.
        workload: likewise.
    """
    raw = {"kvflow": 1, "name": name, "agents": agents, "repeat": True, "workload": workload}
    recipe = Recipe.model_validate(raw)
    return Loaded(recipe, Path(f"{name}.yaml"), to_graph(recipe), MappingProxyType({}))


def sequence(name: str, fixed: int, dynamic: int, output: int) -> Loaded:
    """Ten agents one after another, nothing shared."""
    return chains(name, 1, fixed, dynamic, output)


def chains(name: str, count: int, fixed: int, dynamic: int, output: int) -> Loaded:
    """Independent sequences of ten agents, each with prompts of its own, side by side in one run.

    Args:
        name: of the recipe.
        count: of sequences; at most 25, since a recipe has at most 256 agents.
        fixed: tokens of each fixed prefix.
        dynamic: tokens after it.
        output: tokens of each answer.
    """
    agents: dict[str, dict[str, Any]] = {}
    for chain in range(count):
        task = f"t{chain}-" if count > 1 else ""
        for place in range(AGENTS):
            spec: dict[str, Any] = {"fixed_tokens": fixed, "output_tokens": output}
            if place:
                spec["after"] = f"{task}a{place - 1}"
            agents[f"{task}a{place}"] = spec
    return make(name, agents, dynamic_tokens=dynamic, max_calls=count * AGENTS)


def stages(name: str, fixed: int, dynamic: int, output: int) -> Loaded:
    """Ten stages, in each of which one of two agents speaks that share half of their prefix."""
    agents: dict[str, dict[str, Any]] = {}
    before: Sequence[str] = ["start"]
    for place in range(AGENTS):
        pair = [f"a{place}", f"b{place}"]
        for agent in pair:
            after: list[dict[str, Any]] = [{"agent": source, "p": 0.5} for source in before]
            agents[agent] = {
                "fixed_tokens": fixed,
                "shared_prefix": {"name": f"stage-{place}", "tokens": fixed // 2},
                "output_tokens": output,
                "after": after[0] if len(after) == 1 else {"any": after},
            }
        before = pair
    return make(name, agents, dynamic_tokens=dynamic, max_calls=AGENTS)


def wander(row: Loaded, share: float) -> Loaded:
    """The same ten agents, but a share of the calls goes to another one than comes next.

    Args:
        row: a sequence; its first agent follows its last one here.
        share: of the calls, from 0 to 1, spread evenly over the agents that do not come next.

    Returns:
        A workflow with the names and prefixes of `row`, whose runs have as many calls.
    """
    names = list(row.recipe.agents)
    agents: dict[str, dict[str, Any]] = {}
    for at, name in enumerate(names):
        arrows = [
            {"agent": source, "p": p}
            for place, source in enumerate(names)
            if (p := _chance(place, at, len(names), share)) > 0
        ]
        spec = row.recipe.agents[name]
        agents[name] = {
            "fixed_tokens": spec.fixed_tokens,
            "output_tokens": spec.output_tokens,
            "after": {"any": ["start", *arrows] if at == 0 else arrows},
        }
    dynamic = row.recipe.workload.dynamic_tokens.written()
    return make(row.recipe.name, agents, dynamic_tokens=dynamic, max_calls=len(names))


def _chance(source: int, target: int, count: int, share: float) -> float:
    if target == source:
        return 0.0
    if target == (source + 1) % count:
        return 1 - share
    return share / (count - 2)
