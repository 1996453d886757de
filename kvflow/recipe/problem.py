"""What is wrong with a recipe, and where: the words that its author reads."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kvflow.errors import RecipeError

MAX_SHOWN = 50
"""Problems that are told at once: more than anybody mends in one go."""

Location = tuple[str | int, ...]
"""Keys and list positions from the top of a recipe down to a value."""


class Mark(NamedTuple):
    """A place in a file; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong in a recipe, before it is known where the file says it.

    Attributes:
        at: the value meant. May hold steps that the file does not spell out (a list is an `all`).
        message: what is wrong, in words.
        on_key: the key itself is wrong, not its value.
    """

    at: Location
    message: str
    on_key: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding at its place in the file; `path` is written as `agents.planner.after.any[1]`."""

    file: str
    mark: Mark
    path: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.mark.line}:{self.mark.column}"
        return ": ".join(part for part in (place, self.path, self.message) if part)


class InvalidRecipeError(RecipeError):
    """A recipe whose text is wrong in one or more places.

    Args:
        problems: at least one; the first MAX_SHOWN are shown, in the order of the file.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.mark)[:MAX_SHOWN])
        lines = [str(problem) for problem in self.problems]
        if len(lines) == MAX_SHOWN:
            lines.append("... and maybe more")
        # Continuation lines stand under the first one, behind the "error: " before it.
        super().__init__(
            "\n       ".join(lines),
            hint="kvflow recipe schema prints every key and what it takes",
        )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A suggestion in brackets with a space before it, or nothing if no known word is close."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
