"""What a recipe says, as typed data. `kvflow.recipe.load` reads it from a file.

Field texts are the reference: `kvflow recipe schema` and docs/recipes.md are made from them.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from kvflow.graph import START

Mode = Literal["off", "evict", "prefetch", "full"]
_RANGE = re.compile(r"^\s*(\d+)\s*(?:\.\.\s*(\d+)\s*)?$")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class Range(_Part):
    """A whole number, or `low..high` (both ends count)."""

    low: int
    high: int

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | str):
            return value
        match = _RANGE.match(str(value))
        if match is None:
            raise ValueError(f"{value!r} is not a whole number or a range such as 1..4")
        low = int(match[1])
        return {"low": low, "high": int(match[2]) if match[2] else low}

    @model_validator(mode="after")
    def _ordered(self) -> "Range":
        if self.low > self.high:
            raise ValueError(f"{self.low}..{self.high} runs backwards: write {self.high}..{self.low}")
        return self

    @property
    def is_one(self) -> bool:
        """Whether the range holds a single number."""
        return self.low == self.high

    def __str__(self) -> str:
        return str(self.low) if self.is_one else f"{self.low}..{self.high}"


class Alternative(_Part):
    """An edge that is taken in a share of the cases."""

    agent: str = Field(description="The agent it comes from.")
    p: float = Field(gt=0, le=1, description="Share of the source's finished calls that take it.")


class AnyOf(_Part):
    """A branch: one part is enough."""

    any: list["After"] = Field(min_length=1, description="Any one of these is enough.")


class AllOf(_Part):
    """A barrier: every part must have happened."""

    all: list["After"] = Field(min_length=1, description="All of these are needed.")


def _list_is_all(value: Any) -> Any:
    return {"all": value} if isinstance(value, list) else value


After = Annotated[str | Alternative | AnyOf | AllOf, BeforeValidator(_list_is_all)]
AnyOf.model_rebuild()
AllOf.model_rebuild()


class SharedPrefix(_Part):
    """Synthetic tokens that several agents begin with, as agents of one house share its rules."""

    name: str = Field(description="Agents that name the same prefix begin with the same tokens.")
    tokens: int = Field(gt=0, description="How many tokens of fixed_tokens are shared.")


class AgentSpec(_Part):
    """One agent: its fixed prompt, and when it speaks."""

    prompt: str | None = Field(
        None, description="File with the system message, a path inside the recipe's folder."
    )
    fixed_tokens: int | None = Field(
        None, gt=0, description="Without a prompt: this many seeded token ids stand in for it."
    )
    shared_prefix: SharedPrefix | None = Field(
        None, description="With fixed_tokens: the part that is equal in several agents."
    )
    after: After | None = Field(
        None,
        description="What must have happened: a name, a list (= all of them), {any: [...]} or "
        "{all: [...]}, nested; {agent: a, p: 0.3} makes an edge an alternative. "
        "Nothing means after start.",
    )
    fan_out: Range = Field(
        Range(low=1, high=1), description="Calls that one activation makes, in parallel."
    )
    output_tokens: int = Field(
        128, gt=0, description="Most tokens of an answer; exactly so many in a bench."
    )
    memory: Literal["conversation", "none"] = Field(
        "none",
        description="conversation: the agent's next call in the same run extends its last one.",
    )

    @model_validator(mode="after")
    def _one_prompt(self) -> "AgentSpec":
        if (self.prompt is None) == (self.fixed_tokens is None):
            raise ValueError("give either prompt or fixed_tokens")
        if self.shared_prefix is not None:
            if self.fixed_tokens is None:
                raise ValueError("shared_prefix goes with fixed_tokens; a prompt file shares by text")
            if self.shared_prefix.tokens > self.fixed_tokens:
                raise ValueError("shared_prefix.tokens is more than fixed_tokens")
        return self

    @field_validator("fan_out")
    @classmethod
    def _at_least_one_call(cls, value: Range) -> Range:
        if value.low < 1:
            raise ValueError("an agent that is reached makes at least one call: fan_out from 1")
        return value


class WorkloadSpec(_Part):
    """How `run`, `bench` and `plan` drive the workflow."""

    runs: int = Field(4, gt=0, description="How many runs.")
    concurrency: int = Field(1, gt=0, description="How many runs are in flight at once.")
    dynamic_tokens: Range = Field(
        Range(low=32, high=32), description="Tokens of a call after its fixed prefix."
    )
    max_calls: int = Field(
        64, gt=0, description="A run that loops is ended after so many calls."
    )
    seed: int = Field(0, ge=0, description="Draws alternatives, fan-outs, lengths and filler.")


class EngineSpec(_Part):
    """What `kvflow serve` starts; flags on the command line win."""

    model: str | None = Field(None, description="Model path or name, as SGLang takes it.")
    args: dict[str, str | int | float | bool] = Field(
        default_factory=dict, description="SGLang flags without the leading dashes."
    )


class PolicySpec(_Part):
    """Settings of the plugin."""

    mode: Mode = Field("prefetch", description="How much of kvflow is at work.")
    prefetch_depth: int = Field(
        1, ge=0, le=64, description="Prefixes of agents with at most these steps are prefetched."
    )
    untagged_steps: int = Field(
        4, ge=0, le=64, description="Steps that traffic without a tag ranks as."
    )
    max_defer: int = Field(
        8, ge=0, description="Prefill passes for which a call may be passed over."
    )


class Recipe(_Part):
    """A workflow: its agents, their graph, and how it is driven and served."""

    kvflow: Literal[1] = Field(description="Version of the recipe format.")
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Its short name.")
    description: str = Field("", description="One sentence for `kvflow recipe list`.")
    agents: dict[str, AgentSpec] = Field(min_length=1, description="Agents by name.")
    repeat: bool = Field(
        False, description="A finished run is followed by another one (start follows the end)."
    )
    workload: WorkloadSpec = Field(default_factory=WorkloadSpec)
    engine: EngineSpec = Field(default_factory=EngineSpec)
    policy: PolicySpec = Field(default_factory=PolicySpec)

    @field_validator("agents")
    @classmethod
    def _names(cls, value: dict[str, AgentSpec]) -> dict[str, AgentSpec]:
        for name in value:
            if name == START:
                raise ValueError("'start' is the name of the beginning; call the agent otherwise")
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
                raise ValueError(
                    f"agent name {name!r}: letters, digits, . _ - only, at most 64 of them"
                )
        return value
