"""A recipe in another size: the same graph with other lengths."""

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from kvflow.recipe.load import Loaded
from kvflow.recipe.model import AgentSpec, SharedPrefix
from kvflow.recipe.ranges import Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is to be different; None leaves it to the recipe.

    Attributes:
        fixed: tokens of every agent's fixed prefix, synthetic in place of prompt files. What agents
            share stays the same share of it.
        dynamic: tokens of a call after the fixed prefix.
        output: tokens of every answer.
    """

    fixed: int | None = None
    dynamic: Range | None = None
    output: int | None = None


def reshape(loaded: Loaded, shape: Shape) -> Loaded:
    """The recipe in that shape; names and graph stay as they are."""
    recipe = loaded.recipe
    agents = {name: _agent(spec, shape) for name, spec in recipe.agents.items()}
    workload = recipe.workload
    if shape.dynamic is not None:
        workload = workload.model_copy(update={"dynamic_tokens": shape.dynamic})
    prompts = loaded.prompts if shape.fixed is None else MappingProxyType[str, str]({})
    changed = recipe.model_copy(update={"agents": agents, "workload": workload})
    return replace(loaded, recipe=changed, prompts=prompts)


def _agent(spec: AgentSpec, shape: Shape) -> AgentSpec:
    changes: dict[str, Any] = {}
    if shape.output is not None:
        changes["output_tokens"] = shape.output
    if shape.fixed is not None:
        changes |= {"prompt": None, "fixed_tokens": shape.fixed}
        if spec.shared_prefix is not None and spec.fixed_tokens is not None:
            share = spec.shared_prefix.tokens / spec.fixed_tokens
            tokens = max(1, round(share * shape.fixed))
            changes["shared_prefix"] = SharedPrefix(name=spec.shared_prefix.name, tokens=tokens)
    return spec.model_copy(update=changes)
