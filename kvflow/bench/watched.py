"""`timeline.json`: the run of each arm that was watched closely. Keys are only ever added.

Times are in seconds since the run began, where nothing else is said.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvflow.bench.session import Measured
from kvflow.bench.trace import Trace
from kvflow.client.records import CallRecord

SCHEMA_VERSION: Final = 1


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WatchedCall(_Part):
    """One call; null is what was not told, or did not come to pass."""

    run: str
    call: str = Field(description="`run.index` in the workload.")
    agent: str
    state: str
    started_s: float | None
    ttft_s: float | None = Field(description="From the start to the first token.")
    latency_s: float | None = Field(description="From the start to the last token.")
    token_times_s: list[float] | None = Field(description="Of each token after the first one.")
    prompt_tokens: int | None
    dynamic_tokens: int = Field(description="Of the prompt, new in this call.")
    output_tokens: int | None
    cached_device: int | None = Field(description="Tokens found in device memory.")
    cached_host: int | None = Field(description="Tokens loaded from host memory.")
    error: str


class WatchedLook(_Part):
    """What kvflow told at one moment."""

    at_s: float
    loads: bool = Field(description="Whether something was on its way to the device.")
    waits: int = Field(description="Forwards that waited for a load since the server started.")


class WatchedCopy(_Part):
    """A time in which something was on its way to the device."""

    start_s: float
    end_s: float


class WatchedRun(_Part):
    """One run of an arm, after its last turn."""

    setting: str
    arm: str
    calls: list[WatchedCall]
    looks: list[WatchedLook] = Field(description="None of stock SGLang, which tells nothing.")
    copies: list[WatchedCopy] | None = Field(
        description="null: nobody tells (stock SGLang on a GPU)."
    )


class WatchedRuns(_Part):
    """Every run that was watched."""

    schema_version: Literal[1] = SCHEMA_VERSION
    runs: list[WatchedRun]


def watched_runs(measured: Sequence[Measured]) -> WatchedRuns:
    """What is known of the runs that were watched."""
    return WatchedRuns(
        runs=[
            _run(one.setting.name, trial.arm, trial.trace)
            for one in measured
            for trial in one.trials
            if trial.trace is not None
        ]
    )


def _run(setting: str, arm: str, trace: Trace) -> WatchedRun:
    copies = trace.copies
    return WatchedRun(
        setting=setting,
        arm=arm,
        calls=[watched_call(call) for call in trace.calls],
        looks=[WatchedLook(**look._asdict()) for look in trace.looks],
        copies=None if copies is None else [WatchedCopy(**copy._asdict()) for copy in copies],
    )


def watched_call(call: CallRecord) -> WatchedCall:
    """One call without its text."""
    answer = call.answer
    return WatchedCall(
        run=call.run,
        call=call.call.id,
        agent=call.call.agent,
        state=call.state.value,
        started_s=call.started_s,
        ttft_s=None if answer is None else answer.ttft_s,
        latency_s=None if answer is None else answer.latency_s,
        token_times_s=None
        if answer is None
        else [round(time_s, 6) for time_s in answer.token_times_s],
        prompt_tokens=None if answer is None else answer.prompt_tokens,
        dynamic_tokens=call.call.dynamic_tokens,
        output_tokens=None if answer is None else answer.output_tokens,
        cached_device=None if answer is None else answer.cached_device,
        cached_host=None if answer is None else answer.cached_host,
        error=call.error,
    )


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `timeline.json`."""
    return WatchedRuns.model_json_schema()
