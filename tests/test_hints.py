"""Tags from outside: what is read, what is left out, and that nothing breaks (invariant 36)."""

import math
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvflow.graph import MAX_STEPS
from kvflow.hints import (
    MAX_FIXED_TOKENS,
    MAX_GIVEN_AGENTS,
    MAX_NAME,
    BadHint,
    Parsed,
    Reason,
    Tag,
    parse,
)

NAMES = {"client": "app", "workflow": "peer", "run": "r42", "agent": "planner"}
TAG = Tag(**NAMES)
SECRET = "the user's own words"


def tagged(steps: Any = None, **extra: Any) -> dict[str, Any]:
    """What a request carries: the four names and what is added to or replaced among them."""
    return {"kvflow": {**NAMES, **extra}, "kvflow_steps": steps}


def reasons(parsed: Parsed) -> list[Reason]:
    return [bad.reason for bad in parsed.bad]


def test_parse_full_tag_is_read_whole() -> None:
    params = {
        "kvflow": {**NAMES, "fixed_tokens": 812, "final": True},
        "kvflow_steps": {"planner": 3, "executor": 1},
    }
    steps = {"planner": 3, "executor": 1}
    assert parse(params) == Parsed(Tag(**NAMES, fixed_tokens=812, final=True, steps=steps))


def test_parse_minimal_tag_has_no_optional_parts() -> None:
    assert parse({"kvflow": NAMES}) == Parsed(Tag(**NAMES, fixed_tokens=None, final=False))


@pytest.mark.parametrize(
    "params",
    [None, {}, {"thinking_budget": 3}, {"kvflow": None}, "kvflow", ["kvflow"], 7, float("nan")],
)
def test_parse_parameters_of_others_are_untagged(params: object) -> None:
    assert parse(params) == Parsed(None)


def test_parse_optional_null_counts_as_absent() -> None:
    assert parse(tagged(fixed_tokens=None, final=None)) == Parsed(TAG)


@pytest.mark.parametrize("key", list(NAMES))
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, Reason.MISSING),
        (7, Reason.WRONG_TYPE),
        (True, Reason.WRONG_TYPE),
        (math.nan, Reason.WRONG_TYPE),
        ([SECRET], Reason.WRONG_TYPE),
        ({SECRET: SECRET}, Reason.WRONG_TYPE),
        (b"app", Reason.WRONG_TYPE),
        ("", Reason.BAD_NAME),
        ("two\nlines", Reason.BAD_NAME),
        ("\x1b[2J", Reason.BAD_NAME),
        ("lone \ud800 surrogate", Reason.BAD_NAME),
        ("right\u202eto left", Reason.BAD_NAME),
        ("x" * (MAX_NAME + 1), Reason.TOO_LONG),
        (SECRET * 50_000, Reason.TOO_LONG),
    ],
)
def test_parse_bad_name_is_no_tag(key: str, value: object, reason: Reason) -> None:
    parsed = parse(tagged(**{key: value}))
    assert parsed.tag is None
    assert reasons(parsed) == [reason]
    assert f"kvflow.{key}" in parsed.bad[0].detail


@pytest.mark.parametrize("key", ["client", "workflow", "run"])
@pytest.mark.parametrize("name", ["a/b", "/", "a/", ".", ".."])
def test_parse_name_that_cannot_stand_in_a_path_is_no_tag(key: str, name: str) -> None:
    parsed = parse(tagged(**{key: name}))
    assert (parsed.tag, reasons(parsed)) == (None, [Reason.BAD_NAME])
    assert f"kvflow.{key}" in parsed.bad[0].detail


@pytest.mark.parametrize("name", [".hidden", "...", "a b?c#d%2F", "a\\b", "a:b;c"])
def test_parse_name_that_can_be_quoted_in_a_path_is_accepted(name: str) -> None:
    parsed = parse(tagged(client=name, workflow=name, run=name))
    assert parsed == Parsed(Tag(name, name, name, "planner"))


@pytest.mark.parametrize("name", ["x" * MAX_NAME, "Prüfer 7", "计划员", "a/b:c", "🙂"])
def test_parse_printable_name_is_accepted(name: str) -> None:
    parsed = parse(tagged(agent=name))
    assert parsed.tag is not None
    assert (parsed.tag.agent, parsed.bad) == (name, ())


@pytest.mark.parametrize("value", ["x", 3, True, [NAMES], OrderedDict(NAMES)])
def test_parse_tag_that_is_no_plain_map_is_no_tag(value: object) -> None:
    parsed = parse({"kvflow": value})
    assert (parsed.tag, reasons(parsed)) == (None, [Reason.NOT_A_MAP])


def test_parse_steps_without_tag_is_reported() -> None:
    parsed = parse({"kvflow_steps": {"planner": 1}})
    assert (parsed.tag, reasons(parsed)) == (None, [Reason.MISSING])


@pytest.mark.parametrize("value", [0, 1, MAX_FIXED_TOKENS])
def test_parse_fixed_tokens_in_range_is_kept(value: int) -> None:
    assert parse(tagged(fixed_tokens=value)) == Parsed(Tag(**NAMES, fixed_tokens=value))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (-1, Reason.OUT_OF_RANGE),
        (MAX_FIXED_TOKENS + 1, Reason.OUT_OF_RANGE),
        pytest.param(10**5_000, Reason.OUT_OF_RANGE, id="more digits than Python prints"),
        (True, Reason.WRONG_TYPE),
        (812.0, Reason.WRONG_TYPE),
        (math.nan, Reason.WRONG_TYPE),
        (math.inf, Reason.WRONG_TYPE),
        ("812", Reason.WRONG_TYPE),
        ([812], Reason.WRONG_TYPE),
        ({"n": 812}, Reason.WRONG_TYPE),
    ],
)
def test_parse_bad_fixed_tokens_leaves_the_rest(value: object, reason: Reason) -> None:
    parsed = parse(tagged(fixed_tokens=value, final=True))
    assert (parsed.tag, reasons(parsed)) == (Tag(**NAMES, final=True), [reason])


@pytest.mark.parametrize("value", [1, 0, "true", [], {}])
def test_parse_bad_final_leaves_the_rest(value: object) -> None:
    parsed = parse(tagged(final=value, fixed_tokens=5))
    assert (parsed.tag, reasons(parsed)) == (Tag(**NAMES, fixed_tokens=5), [Reason.WRONG_TYPE])


@pytest.mark.parametrize("steps", [[1], "planner", 3, True, OrderedDict(a=1)])
def test_parse_steps_that_are_no_plain_map_are_left_out(steps: object) -> None:
    parsed = parse(tagged(steps))
    assert (parsed.tag, reasons(parsed)) == (TAG, [Reason.NOT_A_MAP])


def test_parse_given_steps_are_clipped() -> None:
    parsed = parse(tagged({"a": 0, "b": MAX_STEPS + 1, "c": 10**5_000}))
    assert parsed == Parsed(Tag(**NAMES, steps={"a": 0, "b": MAX_STEPS, "c": MAX_STEPS}))


@pytest.mark.parametrize(
    ("name", "steps", "reason"),
    [
        ("b", -1, Reason.OUT_OF_RANGE),
        ("b", True, Reason.WRONG_TYPE),
        ("b", 1.0, Reason.WRONG_TYPE),
        ("b", None, Reason.WRONG_TYPE),
        ("b", {"deep": 1}, Reason.WRONG_TYPE),
        ("", 1, Reason.BAD_NAME),
        (SECRET * 50_000, 1, Reason.TOO_LONG),
        (7, 1, Reason.WRONG_TYPE),
        (None, 1, Reason.MISSING),
    ],
)
def test_parse_bad_entry_of_steps_leaves_the_others(
    name: object, steps: object, reason: Reason
) -> None:
    parsed = parse(tagged({"a": 2, name: steps}))
    assert parsed == Parsed(
        Tag(**NAMES, steps={"a": 2}), (BadHint(reason, "kvflow_steps: 1 of 2 entries"),)
    )


def test_parse_steps_without_one_good_entry_are_left_out() -> None:
    parsed = parse(tagged({"a": -1, "b": -2}))
    assert parsed == Parsed(TAG, (BadHint(Reason.OUT_OF_RANGE, "kvflow_steps: 2 of 2 entries"),))


def test_parse_steps_for_too_many_agents_are_left_out() -> None:
    parsed = parse(tagged({f"a{i}": 1 for i in range(MAX_GIVEN_AGENTS + 1)}))
    assert (parsed.tag, reasons(parsed)) == (TAG, [Reason.TOO_MANY])


def test_parse_steps_for_as_many_agents_as_allowed_are_kept() -> None:
    most = {f"a{i}": 1 for i in range(MAX_GIVEN_AGENTS)}
    assert parse(tagged(most)) == Parsed(Tag(**NAMES, steps=most))


def test_parse_unknown_keys_are_ignored_and_reported_once() -> None:
    parsed = parse(tagged(fixed_token=5, **{f"x{i}": SECRET for i in range(5_000)}))
    assert parsed == Parsed(TAG, (BadHint(Reason.UNKNOWN_KEY, "kvflow: 5001 unknown keys"),))


def test_parse_several_bad_parts_are_all_reported() -> None:
    parsed = parse(tagged({"a": -1}, fixed_tokens="x", final="x", other=1))
    assert parsed.tag == TAG
    assert len(parsed.bad) == 4


class Hostile:
    """Anything that is done to it raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def _raise(self, *_: object) -> Any:
        raise RuntimeError

    __eq__ = __bool__ = __len__ = __iter__ = __str__ = __repr__ = __lt__ = __index__ = _raise
    __hash__ = object.__hash__


class HostileMap(dict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise RuntimeError

    get = items = keys = values = __contains__ = __iter__ = __len__ = __bool__ = __getitem__


@pytest.mark.parametrize("kind", [Hostile, HostileMap])
@pytest.mark.parametrize("where", ["params", "kvflow", "agent", "fixed_tokens", "final", "steps"])
def test_parse_objects_that_raise_do_not_get_through(
    where: str, kind: type[Hostile | HostileMap]
) -> None:
    hostile = kind()
    params: object = {
        "params": hostile,
        "kvflow": {"kvflow": hostile},
        "steps": tagged(hostile),
    }.get(where, tagged(**{where: hostile}))
    parsed = parse(params)
    assert parsed.tag in (None, TAG)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(), max_size=20),
    st.binary(max_size=5),
    st.just(SECRET * 1_000),
)
junk = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(scalars, inner, max_size=4),
    max_leaves=6,
)
keys = st.sampled_from([*NAMES, "fixed_tokens", "final", "other", SECRET])
tags = st.dictionaries(keys, junk, max_size=8).map(lambda extra: {**NAMES, **extra}) | junk
params = st.fixed_dictionaries({"kvflow": tags}, optional={"kvflow_steps": junk}) | junk


@settings(deadline=None, max_examples=300)
@given(params)
def test_parse_any_junk_gives_a_tag_within_bounds_or_none(junk_params: object) -> None:
    tag, bad = parse(junk_params)
    if tag is not None:
        for name in (tag.client, tag.workflow, tag.run, tag.agent, *(tag.steps or ())):
            assert 1 <= len(name) <= MAX_NAME
            assert name.encode()
        assert tag.fixed_tokens is None or 0 <= tag.fixed_tokens <= MAX_FIXED_TOKENS
        assert type(tag.final) is bool
        assert all(0 <= steps <= MAX_STEPS for steps in (tag.steps or {}).values())
    for hint in bad:
        assert len(hint.detail) < 100
        assert SECRET not in hint.detail
