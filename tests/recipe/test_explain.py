from typing import Any

import pytest
from pydantic import ValidationError

from kvflow.recipe.explain import findings
from kvflow.recipe.model import Recipe
from kvflow.recipe.problem import MAX_SHOWN, Finding


def found(agent: Any = None, **rest: Any) -> list[Finding]:
    data = {"kvflow": 1, "name": "flow", "agents": {"a": agent or {"fixed_tokens": 8}}, **rest}
    with pytest.raises(ValidationError) as caught:
        Recipe.model_validate(data)
    return findings(caught.value)


def message(agent: Any = None, **rest: Any) -> str:
    (finding,) = found(agent, **rest)
    return finding.message


def test_findings_missing_key_is_named() -> None:
    assert found({"fixed_tokens": 8, "after": {"agent": "b"}}) == [
        Finding(("agents", "a", "after", "<alternative>"), "the key 'p' is missing")
    ]


def test_findings_unknown_key_near_a_known_one_is_suggested() -> None:
    assert message({"fixed_tokens": 8, "aftr": "b"}) == "unknown key 'aftr' (did you mean 'after'?)"


@pytest.mark.parametrize(
    ("rest", "known"),
    [
        (
            {"policy": {"zzz": 1}},
            "mode, prefetch_depth, prefetch_tokens, untagged_steps, untagged_share, max_defer",
        ),
        ({"workload": {"zzz": 1}}, "runs, concurrency, dynamic_tokens, max_calls, seed"),
        ({"agent": {"fixed_tokens": 8, "after": {"any": ["b"], "zzz": 1}}}, "any"),
        (
            {
                "agent": {
                    "fixed_tokens": 8,
                    "shared_prefix": {"name": "x", "tokens": 1, "zzz": 1},
                }
            },
            "name, tokens",
        ),
    ],
)
def test_findings_unknown_key_far_from_all_lists_the_keys_of_its_place(
    rest: dict[str, Any], known: str
) -> None:
    assert message(**rest) == f"unknown key 'zzz' (known here: {known})"


def test_findings_unknown_key_of_an_agent_called_like_a_key_lists_those_of_agents() -> None:
    spec = {"fixed_tokens": 8, "aftr": "a"}
    data = {"kvflow": 1, "name": "flow", "agents": {"workload": spec}}
    with pytest.raises(ValidationError) as caught:
        Recipe.model_validate(data)
    assert findings(caught.value)[0].message.endswith("(did you mean 'after'?)")


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ({"fixed_tokens": 0}, "should be greater than or equal to 1, not 0"),
        ({"fixed_tokens": "8"}, "should be a whole number, not '8'"),
        ({"fixed_tokens": True}, "should be a whole number, not True"),
        ({"prompt": ""}, "should not be empty"),
        ({"fixed_tokens": 8, "after": []}, "should not be empty"),
        ({"fixed_tokens": 8, "after": {"any": []}}, "should not be empty"),
        ({"fixed_tokens": 8, "after": {"any": "b"}}, "should be a list, not 'b'"),
        (
            {"fixed_tokens": 8, "after": 3},
            "should be an agent's name, a list, {any: [...]}, {all: [...]} or "
            "{agent: ..., p: ...}, not 3",
        ),
        ({"fixed_tokens": 8, "memory": "x"}, "should be 'conversation' or 'none', not 'x'"),
        ({"fixed_tokens": 8, "fan_out": "0..2"}, "should lie in 1..256: calls of one activation"),
        ({"fixed_tokens": 8, "fan_out": "3..2"}, "3..2 runs backwards: write 2..3"),
        ({"fixed_tokens": 8, "after": {"agent": "b", "p": 1.5}}, "less than or equal to 1"),
        ({}, "give either prompt or fixed_tokens"),
        ({"prompt": "x", "fixed_tokens": 8}, "give either prompt or fixed_tokens"),
        ({"prompt": "x", "shared_prefix": {"name": "x", "tokens": 1}}, "goes with fixed_tokens"),
        (
            {"fixed_tokens": 8, "shared_prefix": {"name": "x", "tokens": 9}},
            "shared_prefix.tokens is more than fixed_tokens",
        ),
        ([], "should be a mapping of keys to values"),
    ],
)
def test_findings_wrong_value_says_what_is_wanted(agent: Any, text: str) -> None:
    data = {"kvflow": 1, "name": "flow", "agents": {"a": agent}}
    with pytest.raises(ValidationError) as caught:
        Recipe.model_validate(data)
    (finding,) = findings(caught.value)
    assert text in finding.message


@pytest.mark.parametrize("name", ["start", "a b", "-a", "", "é", "x" * 65, "a\n"])
def test_findings_bad_agent_name_points_at_the_key(name: str) -> None:
    data = {"kvflow": 1, "name": "flow", "agents": {name: {"fixed_tokens": 8}}}
    with pytest.raises(ValidationError) as caught:
        Recipe.model_validate(data)
    (finding,) = findings(caught.value)
    assert finding.on_key
    assert finding.at[:2] == ("agents", name)


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_findings_other_version_is_refused(version: Any) -> None:
    assert message(kvflow=version).startswith("should be 1")


@pytest.mark.parametrize(
    ("flag", "text"),
    [("--tp-size", "without leading dashes: tp-size"), ("a b", "'a b' is no flag"), ("", "is no")],
)
def test_findings_bad_flag_points_at_the_key(flag: str, text: str) -> None:
    (finding,) = found(engine={"args": {flag: 1}})
    assert finding.on_key
    assert text in finding.message


def test_findings_flag_that_is_no_scalar_is_one_finding() -> None:
    assert message(engine={"args": {"x": [1]}}) == "should be text, a number, true or false"


def test_findings_are_no_more_than_anybody_mends() -> None:
    assert len(found({"fixed_tokens": 8, **{f"k{n}": 1 for n in range(200)}})) == MAX_SHOWN
