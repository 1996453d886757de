"""From a name or a path to a recipe that can be used."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from kvflow.errors import RecipeError
from kvflow.graph import Graph
from kvflow.recipe.check import check
from kvflow.recipe.convert import to_graph
from kvflow.recipe.document import Document, read
from kvflow.recipe.explain import findings
from kvflow.recipe.model import Recipe
from kvflow.recipe.problem import InvalidRecipeError, Mark, Problem, did_you_mean
from kvflow.recipe.prompts import read_prompts

MAX_BYTES = 1_000_000
SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A recipe that obeys every rule, with what it refers to.

    Attributes:
        recipe: as written.
        path: of its file.
        graph: of its agents.
        prompts: system messages by agent; agents with fixed_tokens have none.
    """

    recipe: Recipe
    path: Path
    graph: Graph
    prompts: Mapping[str, str]


def load(path: Path) -> Loaded:
    """Read a recipe and its prompts.

    Args:
        path: of the YAML file.

    Raises:
        InvalidRecipeError: the text is wrong; all that can be told at once is told at once.
        RecipeError: the file cannot be read.
    """
    document = read(_text(path), str(path))
    recipe = _recipe(document)
    prompts, unread = read_prompts(recipe, path.parent)
    found = [*check(recipe), *unread]
    if found:
        raise InvalidRecipeError([document.problem(finding) for finding in found])
    return Loaded(recipe, path, to_graph(recipe), MappingProxyType(dict(prompts)))


def find(name_or_path: str | Path) -> Path:
    """The file of a recipe: a path as given, else a shipped recipe by its name.

    Args:
        name_or_path: such as `flows/mine.yaml`, `peer` or `peer.yaml`.

    Raises:
        RecipeError: neither a file nor a shipped recipe, or it cannot be told.
    """
    path = Path(name_or_path)
    try:
        if path.is_file():
            return path
    except OSError as error:
        raise _unreadable(path, error) from None
    shipped = {found.stem: found for found in catalogue()}
    stem = path.stem if path.suffix in SUFFIXES else path.name
    if str(path.parent) == "." and stem in shipped:
        return shipped[stem]
    kind = "this is a folder" if path.is_dir() else "no such file"
    raise RecipeError(
        f"{name_or_path}: {kind}, and no shipped recipe{did_you_mean(stem, shipped)}",
        hint=f"shipped recipes are {', '.join(shipped)}; kvflow recipe list describes them",
    )


def catalogue() -> tuple[Path, ...]:
    """The files of the shipped recipes, by name."""
    package = Path(__file__).parents[1]
    # A wheel carries them inside the package; a checkout has them beside it.
    inside, beside = package / "recipes", package.parent / "recipes"
    return tuple(sorted((inside if inside.is_dir() else beside).glob("*.yaml")))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if len(raw) > MAX_BYTES:
        raise RecipeError(
            f"{path}:1:1: larger than {MAX_BYTES:,} bytes",
            hint="a recipe holds a workflow; prompts go into files of their own",
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        mark = Mark(before.count(b"\n") + 1, len(before) - before.rfind(b"\n"))
        message = f"not UTF-8 text (byte 0x{raw[error.start]:02x})"
        raise InvalidRecipeError([Problem(str(path), mark, "", message)]) from None


def _unreadable(path: Path, error: OSError | ValueError) -> RecipeError:
    reason = error.strerror if isinstance(error, OSError) else error
    return RecipeError(f"{path}: cannot be read: {reason}")


def _recipe(document: Document) -> Recipe:
    try:
        return Recipe.model_validate(document.data)
    except ValidationError as error:
        problems = [document.problem(finding) for finding in findings(error)]
        raise InvalidRecipeError(problems) from None
