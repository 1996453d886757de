"""The result of a bench as others read it: JSON, schema version 1. Keys are only ever added.

A bench of a recipe gives one `Document`; a suite gives a `SuiteDocument` with one for each setting.
"""

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from kvflow.bench.stats import Claim

SCHEMA_VERSION: Final = 1


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Spread(_Part):
    """Seconds of whole runs."""

    mean: float
    p50: float
    p95: float
    p99: float


class AgentFigures(_Part):
    """The calls of one agent."""

    calls: int
    ttft_ms: float = Field(description="Mean time to the first token.")
    reusable_tokens: int = Field(description="Of all prompts, without their new dynamic parts.")
    device_tokens: int = Field(description="Of these, found in device memory.")
    host_tokens: int = Field(description="Of these, loaded from host memory.")
    computed_tokens: int = Field(description="Prompt tokens that were computed.")


class ArmFigures(_Part):
    """Everything measured of one arm, over all repeats."""

    label: str
    repeats: int
    run_s: Spread | None = Field(description="None: no run went through.")
    run_s_by_repeat: dict[int, float] = Field(description="Mean of a run, by repeat.")
    ttft_s_by_repeat: dict[int, float] = Field(description="Mean time to the first token.")
    metrics: dict[str, float] = Field(description="Under the key names of vllm bench serve.")
    reusable_tokens: int
    device_tokens: int
    host_tokens: int
    computed_tokens: int
    device_share: float = Field(description="Of reusable tokens, found in device memory.")
    host_share: float = Field(description="Of reusable tokens, loaded from host memory.")
    agents: dict[str, AgentFigures]
    engine: dict[str, float] = Field(
        description="What kvflow counted while runs were measured; empty for stock SGLang."
    )
    cpu_cores: float | None = Field(description="Cores that the server kept busy, on average.")
    gpu_busy: float | None = Field(description="Share of the time in which a kernel ran.")
    h2d_gbps: float | None = Field(
        description="GB/s to the device: what NVML saw, or what the emulated link carried."
    )
    link_share: float | None = Field(
        description="Of what the emulated link could carry to the device, carried."
    )
    warm_rounds: int = Field(description="Rounds before the first measurement.")
    mismatch: float | None = Field(
        description="Share of answers, with a warm cache, that differ from the baseline's with an "
        "empty one; of the baseline itself, its own hits against its own misses."
    )
    answers_compared: int = Field(default=0, description="Of which `mismatch` is a share.")
    plain_ttft_ms: float | None = Field(description="Of plain chats beside the workflow.")
    failure: str | None = Field(description="Why the arm took no more turns.")


class SpeedupFigure(_Part):
    """How many times as fast an arm is as another, with its 95 % interval."""

    mean: float
    low: float | None
    high: float | None
    claim: Claim

    def inverted(self) -> "SpeedupFigure":
        """The same comparison the other way round."""
        turned = {Claim.FASTER: Claim.SLOWER, Claim.SLOWER: Claim.FASTER}
        return SpeedupFigure(
            mean=1 / self.mean,
            low=1 / self.high if self.high else None,
            high=1 / self.low if self.low else None,
            claim=turned.get(self.claim, self.claim),
        )


class Verdict(_Part):
    """The result in words."""

    headline: str
    reasons: list[str]
    advice: list[str]


class Document(_Part):
    """One setting: what was set up, what was measured, and what it means."""

    schema_version: Literal[1] = SCHEMA_VERSION
    recipe: str
    setup: dict[str, Any]
    environment: dict[str, str | int | float | None]
    arms: dict[str, ArmFigures]
    speedups: dict[str, SpeedupFigure | dict[str, SpeedupFigure]] = Field(
        description="Of whole runs, by `arm/baseline`; under `ttft`, of the first token."
    )
    verdict: Verdict

    def speedup(self, pair: str, metric: str = "run") -> SpeedupFigure | None:
        """One of the speed-ups; None if it was not measured."""
        found = self.speedups.get(pair)
        if metric == "ttft":
            of_ttft = self.speedups.get("ttft")
            found = of_ttft.get(pair) if isinstance(of_ttft, dict) else None
        return found if isinstance(found, SpeedupFigure) else None

    def over(self, arm: str, other: str, metric: str = "run") -> SpeedupFigure | None:
        """The speed-up of an arm over any other, whichever way it is written down."""
        found = self.speedup(f"{arm}/{other}", metric)
        if found is None and (turned := self.speedup(f"{other}/{arm}", metric)) is not None:
            return turned.inverted()
        return found


class SuiteDocument(_Part):
    """Several settings."""

    schema_version: Literal[1] = SCHEMA_VERSION
    suite: str
    about: str
    environment: dict[str, str | int | float | None]
    settings: list[Document]


Result = Document | SuiteDocument
RESULT: TypeAdapter[Result] = TypeAdapter(Result)


def settings_of(result: Result) -> list[Document]:
    """The settings of a result."""
    return result.settings if isinstance(result, SuiteDocument) else [result]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of what `kvflow bench --format json` prints."""
    return RESULT.json_schema()
