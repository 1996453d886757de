"""Recipes as data: valid ones of every shape, and documents that only look like recipes."""

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from kvflow.recipe.check import check
from kvflow.recipe.model import (
    AgentSpec,
    Alternative,
    EngineSpec,
    PolicySpec,
    Recipe,
    SharedPrefix,
    WorkloadSpec,
)

WORDS = [
    *(
        key
        for model in (Recipe, AgentSpec, SharedPrefix, Alternative)
        for key in model.model_fields
    ),
    *(key for model in (WorkloadSpec, EngineSpec, PolicySpec) for key in model.model_fields),
    *("any", "all", "start", "a", "b"),
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

_NAMES = st.lists(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,5}", fullmatch=True).filter(lambda n: n != "start"),
    min_size=1,
    max_size=6,
    unique=True,
)
_FLAGS = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,5}", fullmatch=True)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    """Valid recipes of agents without prompt files: cycles, nesting, alternatives."""
    names = draw(_NAMES)
    choices = {source: draw(st.booleans()) for source in names}
    agents = {}
    for place, name in enumerate(names):
        way = draw(_after(["start", *names[:place]], len(names), choices))
        back = draw(st.sets(st.sampled_from(names)))
        loops = [_edge(source, len(names), choices) for source in sorted(back - _sources(way))]
        agents[name] = draw(_agent()) | {"after": {"any": [way, *loops]} if loops else way}
    recipe = Recipe.model_validate(
        {
            "kvflow": 1,
            "name": draw(st.sampled_from(names)),
            "description": draw(TEXT),
            "agents": agents,
            "repeat": draw(st.booleans()),
            "workload": {"runs": draw(st.integers(1, 99)), "dynamic_tokens": draw(_range())},
            "engine": {"args": draw(st.dictionaries(_FLAGS, _scalars(), max_size=2))},
            "policy": {"mode": draw(st.sampled_from(["off", "evict", "prefetch", "full"]))},
        }
    )
    assume(not check(recipe))
    return recipe


def junk() -> st.SearchStrategy[Any]:
    """Documents made of the words of recipes, mostly in the wrong places."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 10**20),
        st.floats(),
        st.sampled_from([*WORDS, "1..4", "4..1", "prefetch", "../x"]),
        TEXT,
    )
    keys = st.one_of(st.sampled_from(WORDS), TEXT, st.integers())
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=6)
        ),
        max_leaves=30,
    )


@st.composite
def _after(draw: st.DrawFn, sources: list[str], most: int, choices: dict[str, bool]) -> Any:
    chosen = draw(st.lists(st.sampled_from(sources), min_size=1, max_size=3, unique=True))
    parts: list[Any] = [_edge(source, most, choices) for source in chosen]
    while len(parts) > 1:
        word = draw(st.sampled_from(["any", "all", "list"]))
        pair = [parts.pop(), parts.pop()]
        parts.append(pair if word == "list" else {word: pair})
    return parts[0]


def _edge(source: str, most: int, choices: dict[str, bool]) -> Any:
    # Shares that leave a rest, however many arrows there are.
    return {"agent": source, "p": 0.5 / most} if choices.get(source) else source


def _sources(after: Any) -> set[str]:
    if isinstance(after, str):
        return {after}
    if isinstance(after, dict) and "agent" in after:
        return {after["agent"]}
    parts = after if isinstance(after, list) else next(iter(after.values()))
    return set().union(*map(_sources, parts))


@st.composite
def _agent(draw: st.DrawFn) -> dict[str, Any]:
    fixed = draw(st.integers(1, 10**6))
    agent: dict[str, Any] = {
        "fixed_tokens": fixed,
        "fan_out": draw(_range(256)),
        "output_tokens": draw(st.integers(1, 4096)),
        "memory": draw(st.sampled_from(["conversation", "none"])),
    }
    if draw(st.booleans()):
        shared = {"name": draw(TEXT.filter(bool)), "tokens": draw(st.integers(1, fixed))}
        agent["shared_prefix"] = shared
    return agent


@st.composite
def _range(draw: st.DrawFn, most: int = 10**6) -> int | str:
    low, high = sorted(draw(st.tuples(st.integers(1, most), st.integers(1, most))))
    return draw(st.sampled_from([low, f"{low}..{high}", f"{low} .. {high}", str(low)]))


def _scalars() -> st.SearchStrategy[Any]:
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    return st.one_of(TEXT, st.booleans(), st.integers(-(10**17), 10**17), numbers)
