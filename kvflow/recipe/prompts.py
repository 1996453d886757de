"""The system messages of a recipe: files inside its folder, and nowhere else.

A recipe may come from anywhere and its prompts are sent to a server, so a prompt must not be able
to name any other file of the machine.
"""

from collections.abc import Mapping
from pathlib import Path

from kvflow.recipe.model import Recipe
from kvflow.recipe.problem import Finding

MAX_BYTES = 1_000_000


def read_prompts(recipe: Recipe, folder: Path) -> tuple[Mapping[str, str], list[Finding]]:
    """Read the prompt files of a recipe.

    Args:
        recipe: names them.
        folder: of the recipe; paths are relative to it and may not lead out.

    Returns:
        The texts by agent, without white space at either end, and what is wrong with the others.
    """
    texts: dict[str, str] = {}
    found: list[Finding] = []
    for name, spec in recipe.agents.items():
        if spec.prompt is None:
            continue
        try:
            texts[name] = _read(folder.resolve(), spec.prompt)
        except ValueError as why:
            found.append(Finding(("agents", name, "prompt"), f"{spec.prompt!r} {why}"))
    return texts, found


def _read(folder: Path, prompt: str) -> str:
    """The text of one prompt.

    Raises:
        ValueError: what is wrong with the file, as the rest of a sentence that begins with it.
    """
    if "\0" in prompt:
        raise ValueError("is no path")
    try:
        path = (folder / prompt).resolve()
        if not path.is_relative_to(folder):
            raise ValueError("leads out of the recipe's folder")
        if not path.is_file():
            raise ValueError(f"is no file in {folder}")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, before Python 3.13
        reason = error.strerror if isinstance(error, OSError) else "links in a circle"
        raise ValueError(f"cannot be read: {reason}") from None
    if len(raw) > MAX_BYTES:
        raise ValueError(f"is larger than {MAX_BYTES:,} bytes")
    try:
        text = raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text (byte {error.start})") from None
    if not text:
        raise ValueError("is empty")
    return text
