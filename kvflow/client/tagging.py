"""The tag that tells the server which agent of which run a call belongs to."""

from collections.abc import Mapping

from kvflow.errors import UsageError
from kvflow.hints import NAME_RULES, STEPS_KEY, TAG_KEY, Reason, parse

_OF_NAMES = (Reason.BAD_NAME, Reason.TOO_LONG)

CustomParams = dict[str, dict[str, str | int | bool]]

WARMING_CLIENT = "kvflow-warm"
"""Owner of the calls that warm a server (see kvflow.client.warm): no application."""


def tag(
    client: str,
    workflow: str,
    run: str,
    agent: str,
    fixed_tokens: int | None = None,
    final: bool = False,
    steps: Mapping[str, int] | None = None,
) -> CustomParams:
    """The `custom_params` of a call: who speaks, in which run of which workflow.

    For an OpenAI client: `extra_body={"custom_params": tag("app", "peer", "r42", "planner")}`; for
    SGLang's /generate: `sampling_params={"custom_params": tag(...)}`. An SGLang server without
    kvflow ignores it.

    Args:
        client: the application; owner of the run and agent names.
        workflow: name of the recipe that the server knows.
        run: this run; unique among the client's runs in flight.
        agent: who speaks, by its name in the recipe.
        fixed_tokens: how many tokens at the start of the prompt are the same in every call of the
            agent. None: the server finds out.
        final: whether the run ends with this call.
        steps: steps-to-execution by agent, for an application that evaluates its own graph (paper
            section 3.3, the wire format). None: the server evaluates the recipe's graph.

    Returns:
        Dicts of scalars, one level deep. Deeper ones can end a scheduler process of SGLang.

    Raises:
        UsageError: the server would ignore a part of it, by the rules of `kvflow.hints`.
    """
    who: dict[str, str | int | bool] = {
        "client": client,
        "workflow": workflow,
        "run": run,
        "agent": agent,
    }
    if fixed_tokens is not None:
        who["fixed_tokens"] = fixed_tokens
    if final:
        who["final"] = True
    params: CustomParams = {TAG_KEY: who}
    if steps is not None:
        params[STEPS_KEY] = dict(steps)
    for bad in parse(params).bad:
        raise UsageError(
            f"the tag of a call by {agent!r} in run {run!r} is not valid",
            f"{bad.detail} ({bad.reason.replace('_', ' ')})",
            NAME_RULES if bad.reason in _OF_NAMES else "",
        )
    return params
