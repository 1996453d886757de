"""What a recipe says, as typed data. `kvflow.recipe.load` reads it from a file.

Field texts are the reference: `kvflow recipe schema` and docs/recipes.md are made from them.
"""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)
from typing_extensions import TypeAliasType

from kvflow.graph import START
from kvflow.recipe.ranges import Range, within

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

Mode = Literal["off", "evict", "prefetch", "full"]
Tokens = Annotated[int, Field(ge=1, le=1_000_000)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Alternative(_Part):
    """An edge that is taken in a share of the cases."""

    agent: str = Field(description="The agent it comes from, or `start`.")
    p: float = Field(
        gt=0,
        le=1,
        description="Share of the source's finished calls that take it. The alternatives out of "
        "one source sum to at most 1; what is left ends the run.",
    )


class AnyOf(_Part):
    """A branch: one part is enough."""

    any: list["After"] = Field(min_length=1, description="Any one of these is enough.")


class AllOf(_Part):
    """A barrier: every part must have happened. A plain list means the same."""

    all: list["After"] = Field(min_length=1, description="All of these are needed.")


SHAPES: dict[str, type] = {
    "<name>": str,
    "<any>": AnyOf,
    "<all>": AllOf,
    "<alternative>": Alternative,
}
"""Forms of `after`. Pydantic puts these words into an error's location."""


def _shape(value: Any) -> str | None:
    for shape, kind in SHAPES.items():
        if isinstance(value, kind):
            return shape
    if not isinstance(value, dict):
        return None
    forms = {"any": "<any>", "all": "<all>", "agent": "<alternative>", "p": "<alternative>"}
    return next((forms[key] for key in forms if key in value), None)


def _list_is_all(value: Any) -> Any:
    return {"all": value} if isinstance(value, list) else value


_Shape = Annotated[
    Annotated[str, Tag("<name>")]
    | Annotated[AnyOf, Tag("<any>")]
    | Annotated[AllOf, Tag("<all>")]
    | Annotated[Alternative, Tag("<alternative>")],
    Discriminator(
        _shape,
        custom_error_type="after_shape",
        custom_error_message="should be an agent's name, a list, {any: [...]}, {all: [...]} or "
        "{agent: ..., p: ...}",
    ),
]
_Written: Any = _Shape | list["After"]
# A named alias, so that the schema can refer to it from inside itself.
After = TypeAliasType(
    "After", Annotated[_Shape, BeforeValidator(_list_is_all, json_schema_input_type=_Written)]
)
AnyOf.model_rebuild()
AllOf.model_rebuild()


class SharedPrefix(_Part):
    """Synthetic tokens that several agents begin with, as agents of one house share its rules."""

    name: str = Field(
        min_length=1, description="Agents that name the same prefix begin with the same tokens."
    )
    tokens: Tokens = Field(description="How many tokens of fixed_tokens are shared.")


class AgentSpec(_Part):
    """One agent: its fixed prefix, and when it speaks."""

    prompt: str | None = Field(
        default=None,
        min_length=1,
        description="File with the system message, a path inside the recipe's folder. An agent "
        "has either this or fixed_tokens.",
    )
    fixed_tokens: Tokens | None = Field(
        default=None, description="Without a prompt: this many seeded token ids stand in for it."
    )
    shared_prefix: SharedPrefix | None = Field(
        default=None, description="With fixed_tokens: the part that is equal in several agents."
    )
    after: After | None = Field(
        default=None,
        description="What must have happened: a name, a list (= all of them), {any: [...]} or "
        "{all: [...]}, nested; {agent: a, p: 0.3} makes an edge an alternative. "
        "Nothing means after `start`.",
    )
    fan_out: Annotated[Range, within(1, 256, "calls of one activation")] = Field(
        default=Range(low=1, high=1), description="Calls that one activation makes, in parallel."
    )
    output_tokens: Tokens = Field(
        default=128, description="Most tokens of an answer; exactly so many in a bench."
    )
    memory: Literal["conversation", "none"] | None = Field(
        default=None,
        description="conversation: the agent's next call in the same run extends its last one; "
        "none: it does not. Nothing: the server learns it from the calls.",
    )

    @model_validator(mode="after")
    def _one_prefix(self) -> Self:
        if (self.prompt is None) == (self.fixed_tokens is None):
            raise ValueError("give either prompt or fixed_tokens")
        if self.shared_prefix is not None:
            if self.fixed_tokens is None:
                raise ValueError("shared_prefix goes with fixed_tokens; prompt files share by text")
            if self.shared_prefix.tokens > self.fixed_tokens:
                raise ValueError("shared_prefix.tokens is more than fixed_tokens")
        return self


class WorkloadSpec(_Part):
    """How `run` and `bench` drive the workflow."""

    runs: int = Field(default=4, ge=1, description="How many runs.")
    concurrency: int = Field(default=1, ge=1, description="How many runs are in flight at once.")
    dynamic_tokens: Annotated[Range, within(1, 1_000_000, "tokens of one call")] = Field(
        default=Range(low=32, high=32), description="Tokens of a call after its fixed prefix."
    )
    max_calls: int = Field(
        default=64, ge=1, description="A run that loops is ended after so many calls."
    )
    seed: int = Field(
        default=0, ge=0, description="Draws alternatives, fan-outs, lengths and filler."
    )


def _is_scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float | bool):
        raise ValueError("should be text, a number, true or false")
    return value


def _flag(value: str) -> str:
    if value.startswith("-"):
        raise ValueError(f"write the flag without leading dashes: {value.lstrip('-')}")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", value):
        raise ValueError(f"{value!r} is no flag: letters, digits, _ and - only")
    return value


Flag = Annotated[str, AfterValidator(_flag)]
FlagValue = Annotated[str | int | float | bool, BeforeValidator(_is_scalar)]


class EngineSpec(_Part):
    """What `kvflow serve` starts; flags on the command line win."""

    model: str | None = Field(
        default=None,
        min_length=1,
        description="Model path or name, as SGLang takes it. The CPU engine heeds --model alone.",
    )
    args: dict[Flag, FlagValue] = Field(
        default_factory=dict,
        description="SGLang flags without the leading dashes: true for one that stands alone, "
        "false to leave out one that kvflow would give. Not used on the CPU engine.",
    )


class PolicySpec(_Part):
    """Settings of the plugin."""

    mode: Mode = Field(default="prefetch", description="How much of kvflow is at work.")
    prefetch_depth: int = Field(
        default=1,
        ge=0,
        le=64,
        description="Prefixes of agents with at most these steps are prefetched, and of farther "
        "ones what a slow link could not load in time later; 0: nothing is.",
    )
    prefetch_tokens: int = Field(
        default=8192,
        ge=1,
        description="Most tokens of one prefetch copy, less over a slow link; a longer prefix "
        "arrives in several, so that what a call has to load itself never waits for long.",
    )
    untagged_steps: int = Field(
        default=4, ge=0, le=64, description="Steps that traffic without a tag ranks as."
    )
    untagged_share: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="Share of the device pool that workflows do not take from untagged traffic "
        "while it is in use.",
    )
    max_defer: int = Field(
        default=8, ge=0, description="Prefill passes for which a call may be passed over."
    )


def _name(value: str) -> str:
    if not re.fullmatch(NAME, value):
        raise ValueError(
            f"{value!r} is no name: 1 to 64 of letters, digits, . _ - with no . _ - in front"
        )
    return value


def _not_start(value: str) -> str:
    if value == START:
        raise ValueError(f"{START!r} is the name of the beginning: call the agent otherwise")
    return value


Name = Annotated[str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": NAME})]


class Recipe(_Part):
    """A workflow: its agents, their graph, and how it is driven and served."""

    kvflow: Literal[1] = Field(description="Version of the recipe format.")
    name: Name = Field(description="Its short name.")
    description: str = Field(default="", description="One sentence for `kvflow recipe list`.")
    agents: dict[Annotated[Name, AfterValidator(_not_start)], AgentSpec] = Field(
        min_length=1,
        max_length=256,
        description="Agents by name.",
        json_schema_extra={"additionalProperties": False},  # names that break the pattern
    )
    repeat: bool = Field(
        default=False,
        description="A finished run is followed by another one (start follows the end).",
    )
    workload: WorkloadSpec = Field(
        default=WorkloadSpec(), description="How it is driven by run and bench."
    )
    engine: EngineSpec = Field(default=EngineSpec(), description="What `kvflow serve` starts.")
    policy: PolicySpec = Field(default=PolicySpec(), description="What the plugin may do.")
