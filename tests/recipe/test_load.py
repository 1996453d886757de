import errno
import random
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.calm import calm
from support.recipe_texts import junk, recipes

from kvflow.errors import RecipeError
from kvflow.graph import All, Edge
from kvflow.recipe import load as load_module
from kvflow.recipe.load import MAX_BYTES, catalogue, find, load
from kvflow.recipe.model import Recipe
from kvflow.recipe.problem import InvalidRecipeError

HEAD = "kvflow: 1\nname: flow\nagents:\n"
GOOD = HEAD + "  a: {prompt: a.md}\n  b: {fixed_tokens: 8, after: [a, start]}\n"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to write recipes to, next to a prompt."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "a.md").write_text("You are a.\n", encoding="utf-8")
    return folder / "flow.yaml"


def written(desk: Path, text: str | bytes) -> Path:
    desk.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return desk


def refused(desk: Path, text: str | bytes) -> list[str]:
    """The lines of the refusal, without the name of the file."""
    with pytest.raises(RecipeError) as caught:
        load(written(desk, text))
    return caught.value.what.replace(f"{desk}:", "").split("\n       ")


def attempt(desk: Path, text: str) -> None:
    """Load what may or may not be a recipe: a refusal begins with the place."""
    problem = None
    try:
        load(written(desk, text))
    except RecipeError as error:
        problem = error
    assert problem is None or re.match(rf"{re.escape(str(desk))}:\d+:\d+: ", problem.what)


def test_load_gives_recipe_graph_and_prompts(desk: Path) -> None:
    loaded = load(written(desk, GOOD))
    assert loaded.path == desk
    assert loaded.recipe.name == "flow"
    assert loaded.graph.agents["b"].trigger == All((Edge("a"), Edge("start")))
    assert loaded.prompts == {"a": "You are a."}


@calm
@given(recipe=recipes(), flow=st.booleans())
def test_load_of_a_dumped_recipe_is_the_same_recipe(desk: Path, recipe: Recipe, flow: bool) -> None:
    data = recipe.model_dump(mode="json", exclude_defaults=True)
    text = yaml.safe_dump(data, sort_keys=False, default_flow_style=flow)
    assert load(written(desk, text)).recipe == recipe


@calm
@given(document=junk())
def test_load_of_junk_raises_nothing_but_recipe_errors(desk: Path, document: object) -> None:
    attempt(desk, yaml.safe_dump(document))


@calm
@given(inside=st.dictionaries(st.sampled_from(["a", "b", "c"]), junk(), min_size=1))
def test_load_of_junk_agents_raises_nothing_but_recipe_errors(
    desk: Path, inside: dict[str, object]
) -> None:
    text = yaml.safe_dump({"kvflow": 1, "name": "flow", "agents": inside})
    attempt(desk, text)


@calm
@given(
    raw=st.binary(max_size=60)
    | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_load_of_any_bytes_raises_nothing_but_recipe_errors(desk: Path, raw: bytes) -> None:
    with pytest.raises(RecipeError):
        load(written(desk, raw))


@calm
@given(st.randoms(use_true_random=False))
def test_load_of_a_damaged_recipe_raises_nothing_but_recipe_errors(
    desk: Path, chance: random.Random
) -> None:
    text = GOOD
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text) + 1)
        text = (
            text[:at] + chance.choice([*"\n :[]{},&*!|>'\"%@-?#\t", "", "..", "a"]) + text[at + 1 :]
        )
    attempt(desk, text)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (HEAD + "  a: {fixed_tokens: x}\n", ["4:21: agents.a.fixed_tokens: should be a whole"]),
        (HEAD + "  a: {fixed_tokens: 8, fan_out: 4..1}\n", ["4:33: agents.a.fan_out: 4..1 runs"]),
        (HEAD + "  a: {fixed_tokens: 8, aftr: a}\n", ["4:24: agents.a.aftr: unknown key 'aftr'"]),
        (HEAD + "  a: {fixed_tokens: 8, after: [x, a]}\n", ["4:32: agents.a.after[0]: unknown a"]),
        (HEAD + "  a b: {fixed_tokens: 8}\n", ["4:3: agents['a b']: 'a b' is no name"]),
        (HEAD + "  a:\n    prompt: b.md\n", ["5:13: agents.a.prompt: 'b.md' is no file"]),
        (HEAD + "  a: {prompt: a.md}\nrepat: true\n", ["5:1: repat: unknown key 'repat' (did y"]),
        ("kvflow: 1\nagents: {}\n", ["1:1: the key 'name' is missing", "2:1: agents: should not"]),
        ("- a\n", ["1:1: should be a mapping of keys to values"]),
        ("kvflow: 1\nname: [\n", ["3:1: not YAML: "]),
        (b"kvflow: 1\nname: \xff\n", ["2:7: not UTF-8 text (byte 0xff)"]),
        (
            HEAD + "  a: {prompt: ../x}\n  b: {fixed_tokens: 8, after: c}\n",
            ["4:15: agents.a.prompt: '../x' leads out", "5:31: agents.b.after: unknown agent 'c'"],
        ),
    ],
)
def test_load_refusal_says_where_and_what(desk: Path, text: str | bytes, lines: list[str]) -> None:
    found = refused(desk, text)
    assert len(found) == len(lines)
    for line, start in zip(found, lines, strict=True):
        assert line.startswith(start)


def test_load_too_large_a_file_is_refused_before_it_is_read(desk: Path) -> None:
    assert refused(desk, b"[" * (MAX_BYTES + 1)) == ["1:1: larger than 1,000,000 bytes"]


def test_load_byte_order_mark_is_fine(desk: Path) -> None:
    assert load(written(desk, b"\xef\xbb\xbf" + GOOD.encode())).recipe.name == "flow"


@pytest.mark.parametrize("name", ["absent.yaml", ".", "a\0b"])
def test_load_what_cannot_be_read_is_a_recipe_error(desk: Path, name: str) -> None:
    with pytest.raises(RecipeError, match="cannot be read"):
        load(desk.parent / name)


def test_find_gives_a_path_as_it_is(desk: Path) -> None:
    written(desk, GOOD)
    assert find(str(desk)) == find(desk) == desk


@pytest.mark.parametrize("name", ["peer", "peer.yaml", "peer.yml"])
def test_find_gives_a_shipped_recipe_by_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find(name) in catalogue()
    assert find(name).name == "peer.yaml"


def test_find_prefers_a_file_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "peer.yaml").write_text(GOOD, encoding="utf-8")
    assert find("peer.yaml") == Path("peer.yaml")


def test_find_unknown_name_suggests_and_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError) as caught:
        find("per")
    assert caught.value.what == "per: no such file, and no shipped recipe (did you mean 'peer'?)"
    assert "supervisor" in caught.value.hint


@pytest.mark.parametrize("name", ["flows/peer.yaml", "peer.json", "", "a\0b"])
def test_find_what_is_neither_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError):
        find(name)


@pytest.mark.parametrize("name", ["a" * 300, f"{'a' * 300}/peer.yaml"])
def test_find_name_that_no_file_can_have_is_a_recipe_error(name: str) -> None:
    with pytest.raises(RecipeError):
        find(name)


def test_find_below_a_folder_that_may_not_be_searched_is_a_recipe_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_file(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", is_file)
    with pytest.raises(RecipeError, match="cannot be read: Permission denied"):
        find(tmp_path / "flow.yaml")


def test_find_folder_is_refused_as_one(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="this is a folder"):
        find(tmp_path)


def test_catalogue_is_that_of_the_package_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "kvflow" / "recipes"
    inside.mkdir(parents=True)
    (inside / "only.yaml").touch()
    monkeypatch.setattr(load_module, "__file__", str(tmp_path / "kvflow" / "recipe" / "load.py"))
    assert catalogue() == (inside / "only.yaml",)


def test_invalid_recipe_error_of_load_holds_the_problems(desk: Path) -> None:
    with pytest.raises(InvalidRecipeError) as caught:
        load(written(desk, HEAD + "  a: {}\n  b: {}\n"))
    assert [problem.path for problem in caught.value.problems] == ["agents.a", "agents.b"]
