import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm
from support.frames import make_node

from kvflow.errors import ExitCode
from kvflow.frames import Node, State, Why
from kvflow.tui.filter import EVERYTHING, FilterError, parse

Term = tuple[str, Callable[[Node], bool]]

NAMES = ["app/planner", "app/plan-b", "other/planner", "other/Writer", "a/b/c"]
nodes = st.builds(
    make_node,
    st.integers(1, 60),
    tokens=st.integers(0, 3000),
    depth=st.integers(0, 50),
    state=st.sampled_from(State),
    steps=st.integers(0, 9),
    why=st.sampled_from(Why),
    agents=st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
    locks=st.integers(0, 2),
    hits=st.integers(0, 12),
)


@st.composite
def numeric_terms(draw: st.DrawFn) -> Term:
    key = draw(st.sampled_from(["steps", "tokens", "depth", "hits", "locks", "id"]))
    text, value = draw(
        st.sampled_from([("0", 0), ("3", 3), ("12", 12), ("1.5k", 1500), ("2K", 2000)])
    )
    operator, holds = draw(
        st.sampled_from(
            [
                ("<", lambda one: one < value),
                ("<=", lambda one: one <= value),
                ("=", lambda one: one == value),
                (">=", lambda one: one >= value),
                (">", lambda one: one > value),
            ]
        )
    )
    return f"{key}{operator}{text}", lambda node: holds(getattr(node, key))


@st.composite
def word_terms(draw: st.DrawFn) -> Term:
    key, vocabulary = draw(st.sampled_from([("state", State), ("why", Why)]))
    words = draw(st.lists(st.sampled_from(list(vocabulary)), min_size=1, max_size=3))
    return f"{key}:{','.join(words)}", lambda node: getattr(node, key) in words


@st.composite
def name_terms(draw: st.DrawFn) -> Term:
    key = draw(st.sampled_from(["agent", "client"]))
    part = draw(st.sampled_from(["planner", "plan", "writer", "app", "other", "a/b", "c"]))
    operator, holds = draw(
        st.sampled_from(
            [(":", lambda name: part in name.lower()), ("=", lambda name: part == name.lower())]
        )
    )

    def test(node: Node) -> bool:
        pairs = [name.rsplit("/", 1) for name in node.agents]
        return any(holds(pair[key == "agent"]) for pair in pairs)

    return f"{key}{operator}{part}", test


@st.composite
def expression_terms(draw: st.DrawFn) -> Term:
    word = draw(st.sampled_from(["planner|writer", "^1", "HOST", "b.c", "[0-9]$"]))

    def test(node: Node) -> bool:
        text = " ".join([str(node.id), node.state.value, node.why.value, *node.agents])
        return re.search(word, text, re.IGNORECASE) is not None

    return word, test


plain_terms = st.one_of(
    numeric_terms(),
    word_terms(),
    name_terms(),
    expression_terms(),
    st.just(("locked", lambda node: node.locks > 0)),
)


@st.composite
def terms(draw: st.DrawFn) -> Term:
    text, test = draw(plain_terms)
    return draw(st.sampled_from([(text, test), (f"!{text}", lambda node: not test(node))]))


@calm
@given(st.lists(terms(), max_size=4), st.lists(nodes, max_size=6))
def test_filter_matches_what_all_of_its_terms_say(some: list[Term], shown: list[Node]) -> None:
    wanted = parse("  ".join(text for text, _ in some))
    for node in shown:
        assert wanted.matches(node) == all(test(node) for _, test in some)


def refusal_of(text: str) -> FilterError | None:
    try:
        parse(text)
    except FilterError as error:
        return error
    return None


@calm
@given(st.text() | st.text("[({|*+?!:=<>0123456789kstep\\"))
def test_filter_of_any_text_is_read_or_refused_with_a_place_inside_it(text: str) -> None:
    error = refusal_of(text)
    if error is None:
        assert parse(text).matches(make_node(1)) in (True, False)
    else:
        assert 0 <= error.start < error.end <= len(text)
        assert error.why


@pytest.mark.parametrize("text", ["a{99999999999999999999}", "[[a]", "(" * 5000 + ")" * 5000])
def test_expression_that_python_chokes_on_is_read_or_refused(text: str) -> None:
    error = refusal_of(text)
    assert error is None or error.why.startswith("no regular expression")


def test_filter_without_words_matches_everything_and_is_falsy() -> None:
    assert parse("  ") == EVERYTHING
    assert not parse("")
    assert parse("locked")
    assert parse(" locked ").text == "locked"


@pytest.mark.parametrize(
    ("text", "start", "why", "hint"),
    [
        ("steps<3 state:gpu", 8, "state is one of device, mirrored,", "such as state:device"),
        ("state:lodaing", 0, "state is one of", "did you mean state:loading?"),
        ("why:", 0, "why: needs a value", "such as why:spent"),
        ("state:host,", 0, "state is one of", "such as state:device"),
        ("stpes<3", 0, "a filter knows state, why,", "did you mean steps<3?"),
        ("tokens>many", 0, "tokens> needs a number", "such as tokens>3"),
        ("tokens>", 0, "tokens> needs a number", "such as tokens>3"),
        ("agent<3", 0, "< does not go with agent", "such as agent:planner"),
        ("steps:3", 0, ": does not go with steps", "such as steps>3"),
        ("locked !", 7, "! stands before what must not be so", "such as !locked"),
        ("a(b", 0, "no regular expression: missing )", "escape it with \\"),
        ("!x=1", 0, "a filter knows state", ""),
    ],
)
def test_filter_that_makes_no_sense_says_where_what_and_what_instead(
    text: str, start: int, why: str, hint: str
) -> None:
    with pytest.raises(FilterError) as refusal:
        parse(text)
    error = refusal.value
    assert (error.start, error.end) == (start, text.find(" ", start) % (len(text) + 1))
    assert error.what == f"filter, column {start + 1}: {text[error.start : error.end]!r}"
    assert error.why.startswith(why)
    assert error.hint == hint
    assert error.exit_code is ExitCode.USAGE
