"""SGLang's flags as lists, and how several sources of them become one command line.

What argparse does decides here (sglang/srt/server_args.py, `prepare_server_args`): a flag is
spelled with dashes, `--flag value` and `--flag=value` are the same, and of two values the last
one wins. A switch has no opposite, so that a flag given again replaces the earlier one instead of
following it.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kvflow.errors import UsageError

# SGLang's second names for flags that kvflow gives too (sglang/srt/arg_groups/fields/model.py,
# memory.py: `aliases`).
_ALIASES = {
    "--model": "--model-path",
    "--enable-hicache": "--enable-hierarchical-cache",
}


class Flag(NamedTuple):
    """One flag with the words that belong to it.

    Attributes:
        name: with its dashes, as it was written.
        values: none for a switch, several for a flag that takes a list.
    """

    name: str
    values: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The name under which two spellings of the flag are the same."""
        return _ALIASES.get(self.name, self.name)


def parse(words: Iterable[str]) -> list[Flag]:
    """The flags of a command line, in order.

    Args:
        words: what a shell would hand to SGLang.

    Raises:
        UsageError: a word that belongs to no flag comes first.
    """
    found: list[Flag] = []
    for word in words:
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word.partition("=")
            found.append(Flag(name, (value,) if equals else ()))
        elif found:
            found[-1] = found[-1]._replace(values=(*found[-1].values, word))
        else:
            raise UsageError(
                f"{word!r} is not an SGLang flag",
                "those begin with two dashes, and a recipe is given with --recipe",
                "kvflow serve --recipe FILE -- --tp-size 2",
            )
    return found


def from_recipe(args: Mapping[str, str | int | float | bool]) -> tuple[list[Flag], set[str]]:
    """The `engine.args` of a recipe.

    Returns:
        The flags to give, and the keys of those that the recipe turns off with `false`.
    """
    given = [
        Flag(f"--{name}", () if value is True else (str(value),))
        for name, value in args.items()
        if value is not False
    ]
    return given, {Flag(f"--{name}").key for name, value in args.items() if value is False}


def merge(*sources: Iterable[Flag]) -> list[Flag]:
    """One list out of several; a flag of a later source replaces that of an earlier one.

    A source may repeat a flag; the repetition is SGLang's to understand.
    """
    merged: dict[str, list[Flag]] = {}
    for source in sources:
        fresh: dict[str, list[Flag]] = {}
        for flag in source:
            fresh.setdefault(flag.key, []).append(flag)
        merged |= fresh
    return [flag for flags in merged.values() for flag in flags]


def value_of(flags: Iterable[Flag], key: str, default: str = "") -> str:
    """The value that SGLang will use for a flag: the last one given."""
    values = [flag.values[-1] for flag in flags if flag.key == key and flag.values]
    return values[-1] if values else default


def words(flags: Iterable[Flag]) -> list[str]:
    """The flags as a shell would hand them to SGLang."""
    return [word for flag in flags for word in (flag.name, *flag.values)]
