import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm
from support.recipe_texts import TEXT

from kvflow.recipe.document import MAX_DEPTH, dotted, read
from kvflow.recipe.problem import Finding, InvalidRecipeError, Mark

TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**17), 10**17), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=20,
)


def refused(text: str) -> str:
    with pytest.raises(InvalidRecipeError) as caught:
        read(text, "f")
    return caught.value.what


@calm
@given(TREES, st.booleans())
def test_read_gives_back_what_was_written(tree: object, flow: bool) -> None:
    assert read(yaml.safe_dump(tree, default_flow_style=flow), "f").data == tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("0x10", "0x10"),
        ("2024-01-01", "2024-01-01"),
        ("010", "010"),
        ("True", True),
        ("~", None),
        ("12e4", "12e4"),
        ("1.5e+3", 1500.0),
        (".5", 0.5),
        ("'1'", "1"),
        ("9" * 30, 10**30 - 1),
        ("9" * 5000, "9" * 5000),  # more digits than Python converts
    ],
)
def test_read_scalar_is_what_all_versions_of_yaml_say(text: str, value: object) -> None:
    data = read(f"k: {text}", "f").data
    assert data == {"k": value}
    assert isinstance(data, dict)
    assert type(data["k"]) is type(value)


def test_read_keys_are_text() -> None:
    assert read("1: a\nno: b\n~: c", "f").data == {"1": "a", "no": "b", "~": "c"}


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("", "f:1:1: the file is empty"),
        ("a: 1\na: 2", "f:2:1: a: given twice, first in line 1"),
        ("x:\n  - {a: 1, b: 2, a: 3}", "f:2:18: x[0].a: given twice, first in line 2"),
        ("a: &x [1]\nb: *x", "f:2:4: no aliases here"),
        ("a: !!python/name:os.system x", "f:1:4: a: no tags here"),
        ("a: !!set {b}", "f:1:4: a: no tags here"),
        ("a: !!int x", "f:1:4: a: 'x' is no int"),
        ("? [a]\n: b", "f:1:3: a key should be plain text"),
        ("a: [1, 2", "f:1:9: not YAML: "),
        ("a: 1\n\tb: 2", "f:2:1: not YAML: "),
        ("a: 1\n---\nb: 2", "f:2:1: not YAML: "),
        ("a: 1\nb: \x07", "f:2:4: the character U+0007"),
        ("[" * (MAX_DEPTH + 1), f"f:1:{MAX_DEPTH + 1}: nested deeper than {MAX_DEPTH}"),
    ],
)
def test_read_what_is_no_recipe_says_where(text: str, start: str) -> None:
    assert refused(text).startswith(start)


def test_read_several_keys_twice_tells_all() -> None:
    assert refused("a: 1\na: 2\nb: 1\nb: 2").count("given twice") == 2


DOCUMENT = read("top:\n  list: [one, {key: two}]\n  word: three\n", "f")


@pytest.mark.parametrize(
    ("finding", "mark", "path"),
    [
        (Finding(("top", "word"), ""), Mark(3, 9), "top.word"),
        (Finding(("top", "word"), "", on_key=True), Mark(3, 3), "top.word"),
        (Finding(("top", "list"), ""), Mark(2, 3), "top.list"),
        (Finding(("top", "list", 1), ""), Mark(2, 15), "top.list[1]"),
        (Finding(("top", "list", 1, "key"), ""), Mark(2, 21), "top.list[1].key"),
        (Finding(("top", "list", "all", 0), ""), Mark(2, 10), "top.list[0]"),
        (Finding(("top", "absent"), ""), Mark(1, 1), "top"),
        (Finding((), ""), Mark(1, 1), ""),
    ],
)
def test_problem_stands_where_the_file_says_it(finding: Finding, mark: Mark, path: str) -> None:
    problem = DOCUMENT.problem(finding)
    assert (problem.mark, problem.path) == (mark, path)


def test_dotted_quotes_what_is_no_word() -> None:
    assert dotted(("agents", "a b", "after", 0, "a.b")) == "agents['a b'].after[0]['a.b']"
