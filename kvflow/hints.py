"""The tag on a call: who speaks, in which run, and what the client knows about it.

A tag is a hint from outside: it may be missing, malformed, huge or contradictory and must cost
no more than its speed-up (invariant 36). `parse` therefore never raises, looks at no
string before its length and at no map before its size, and never repeats what a client wrote.

On the wire, in a request's `custom_params`, depth-1 maps of scalars only:

    {"kvflow": {"client": "app", "workflow": "peer", "run": "r42", "agent": "planner",
                "fixed_tokens": 812, "final": false},          # the last two are optional
     "kvflow_steps": {"planner": 3, "executor": 1}}            # optional
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kvflow.graph import MAX_STEPS

TAG_KEY = "kvflow"
STEPS_KEY = "kvflow_steps"

MAX_NAME = 128
"""Longest client, workflow, run or agent name, in characters."""

NAME_RULES = (
    f"a name has 1 to {MAX_NAME} characters that print; "
    "that of a client, workflow or run has no / and is not . or .."
)
"""What to tell somebody whose name is none."""

MAX_GIVEN_AGENTS = 256
"""Most agents for which one call may give steps."""

MAX_FIXED_TOKENS = 1 << 24
"""Largest fixed prefix that is believed, in tokens: beyond any context length."""

_REQUIRED = ("client", "workflow", "run", "agent")
_OPTIONAL = ("fixed_tokens", "final")
_IN_PATHS = ("client", "workflow", "run")
_WIRE_TYPES = (
    (bool, "a boolean"),
    (int, "a whole number"),
    (float, "a fraction"),
    (str, "text"),
    (list, "a list"),
    (dict, "a map"),
)


class Reason(StrEnum):
    """Why a hint was not used. A fixed set: it labels counters."""

    NOT_A_MAP = "not_a_map"
    MISSING = "missing"
    WRONG_TYPE = "wrong_type"
    BAD_NAME = "bad_name"  # empty, does not print, or cannot stand in the path of a URL
    TOO_LONG = "too_long"
    TOO_MANY = "too_many"
    OUT_OF_RANGE = "out_of_range"
    UNKNOWN_KEY = "unknown_key"


@dataclass(frozen=True, slots=True)
class BadHint:
    """A hint, or a part of one, that was ignored.

    Attributes:
        reason: label for counters.
        detail: one line for events. Names only keys of the wire format, types and sizes: what a
            client wrote may be part of a prompt.
    """

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Tag:
    """What a call says about itself.

    Attributes:
        client: the application; owner of runs and agent names (paper section 3.3).
        workflow: name under which the client registered a graph, or any other name.
        run: the instance of the workflow.
        agent: who speaks.
        fixed_tokens: length of the agent's fixed prefix in tokens, if the client knows it.
        final: whether the run ends with this call.
        steps: steps-to-execution by agent if the client evaluates its own graph, each from 0 to
            MAX_STEPS (the paper's wire format); None if it does not.
    """

    client: str
    workflow: str
    run: str
    agent: str
    fixed_tokens: int | None = None
    final: bool = False
    steps: Mapping[str, int] | None = None


class Parsed(NamedTuple):
    """What `parse` found. No tag and nothing bad: the call is untagged."""

    tag: Tag | None
    bad: tuple[BadHint, ...] = ()


def parse(custom_params: object) -> Parsed:
    """Read the tag of a call.

    A tag without one of its four names is no tag. An optional part that is invalid is left out and
    the rest stands; of `kvflow_steps` only the entries that are invalid. Unknown keys are ignored,
    so that a newer client can talk to an older server, and reported, because a misspelt optional
    key would otherwise be lost in silence. JSON null counts as absent.

    Args:
        custom_params: whatever the request carried.

    Returns:
        The tag, if there is a valid one, and what was ignored. Cost: O(MAX_GIVEN_AGENTS) names.
    """
    # Exact types throughout: a subclass could bring its own methods, and bool is an int.
    if type(custom_params) is not dict:
        return Parsed(None)
    raw_tag, raw_steps = custom_params.get(TAG_KEY), custom_params.get(STEPS_KEY)
    if raw_tag is None and raw_steps is None:
        return Parsed(None)
    if raw_tag is None:
        return Parsed(None, (BadHint(Reason.MISSING, f"{STEPS_KEY} without {TAG_KEY}"),))
    if type(raw_tag) is not dict:
        return Parsed(None, (_mistyped(TAG_KEY, raw_tag, "a map", Reason.NOT_A_MAP),))
    names: dict[str, str] = {}
    for key in _REQUIRED:
        name = _name(f"{TAG_KEY}.{key}", raw_tag.get(key))
        if not isinstance(name, BadHint) and key in _IN_PATHS:
            name = _in_path(f"{TAG_KEY}.{key}", name)
        if isinstance(name, BadHint):
            return Parsed(None, (name,))
        names[key] = name
    bad: list[BadHint] = []
    tag = Tag(
        client=names["client"],
        workflow=names["workflow"],
        run=names["run"],
        agent=names["agent"],
        fixed_tokens=_fixed_tokens(raw_tag.get("fixed_tokens"), bad),
        final=_final(raw_tag.get("final"), bad),
        steps=_steps(raw_steps, bad),
    )
    unknown = len(raw_tag) - sum(key in raw_tag for key in (*_REQUIRED, *_OPTIONAL))
    if unknown:
        bad.append(BadHint(Reason.UNKNOWN_KEY, f"{TAG_KEY}: {unknown} unknown keys"))
    return Parsed(tag, tuple(bad))


def _name(where: str, value: object) -> str | BadHint:
    if value is None:
        return BadHint(Reason.MISSING, f"{where} is missing")
    if type(value) is not str:
        return _mistyped(where, value, "text")
    if len(value) > MAX_NAME:
        return BadHint(Reason.TOO_LONG, f"{where}: {len(value)} characters, at most {MAX_NAME}")
    # Names reach terminals, metric labels and UTF-8 frames: no controls, no lone surrogates.
    if not value or not value.isprintable():
        return BadHint(Reason.BAD_NAME, f"{where} is empty or has characters that do not print")
    return value


def _in_path(where: str, name: str) -> str | BadHint:
    """The name, if the control plane can be asked by it: its routes have names in their paths."""
    # Servers cut a path at its slashes after they have unquoted it, and clients resolve dots.
    if "/" in name or name in (".", ".."):
        return BadHint(Reason.BAD_NAME, f'{where} has a "/", or is "." or ".."')
    return name


def _fixed_tokens(value: object, bad: list[BadHint]) -> int | None:
    where = f"{TAG_KEY}.fixed_tokens"
    if value is None:
        return None
    if type(value) is not int:
        bad.append(_mistyped(where, value, "a whole number"))
        return None
    if not 0 <= value <= MAX_FIXED_TOKENS:
        bad.append(BadHint(Reason.OUT_OF_RANGE, f"{where} is not within 0..{MAX_FIXED_TOKENS}"))
        return None
    return value


def _final(value: object, bad: list[BadHint]) -> bool:
    if value is not None and type(value) is not bool:
        bad.append(_mistyped(f"{TAG_KEY}.final", value, "a boolean"))
    return value is True


def _steps(value: object, bad: list[BadHint]) -> Mapping[str, int] | None:
    if value is None:
        return None
    if type(value) is not dict:
        bad.append(_mistyped(STEPS_KEY, value, "a map", Reason.NOT_A_MAP))
        return None
    size = len(value)
    if size > MAX_GIVEN_AGENTS:
        bad.append(
            BadHint(Reason.TOO_MANY, f"{STEPS_KEY}: {size} keys, at most {MAX_GIVEN_AGENTS}")
        )
        return None
    good: dict[str, int] = {}
    wrong: dict[Reason, int] = {}
    for raw_name, steps in value.items():
        name = _name(STEPS_KEY, raw_name)
        if isinstance(name, BadHint):
            wrong[name.reason] = wrong.get(name.reason, 0) + 1
        elif type(steps) is not int:
            wrong[Reason.WRONG_TYPE] = wrong.get(Reason.WRONG_TYPE, 0) + 1
        elif steps < 0:
            wrong[Reason.OUT_OF_RANGE] = wrong.get(Reason.OUT_OF_RANGE, 0) + 1
        else:
            good[name] = min(steps, MAX_STEPS)
    bad += [BadHint(why, f"{STEPS_KEY}: {n} of {size} entries") for why, n in wrong.items()]
    return good if good or not size else None


def _mistyped(
    where: str, value: object, expected: str, reason: Reason = Reason.WRONG_TYPE
) -> BadHint:
    found = next((label for kind, label in _WIRE_TYPES if type(value) is kind), "something else")
    return BadHint(reason, f"{where} is {found}, expected {expected}")
