"""Which nodes are shown: a small language of words, all of which must be true of a node.

    state:host agent:planner client=app steps<3 tokens>1k locked !spent 'a|b'

    state:TEXT why:TEXT          the beginning of one of their values; several after commas
    agent:TEXT client:TEXT       part of the name of an agent whose prefix ends there; = for all
    steps tokens depth hits locks id children    followed by < <= = >= > and a number, such as 1.5k
    locked                       somebody uses it
    anything else                a regular expression, looked for in id, state, why and agents
    !                            before any of these: not so

Upper and lower case are alike. Pure.
"""

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from operator import attrgetter, eq, ge, gt, le, lt
from typing import Final

from kvflow.errors import UsageError
from kvflow.frames import Node, State, Why

Test = Callable[[Node], bool]

_TERM = re.compile(r"\S+")
_NUMERIC = re.compile(r"(?P<key>[a-z]+)(?P<operator><=|>=|<|>|=)(?P<value>.*)", re.DOTALL)
_TEXTUAL = re.compile(r"(?P<key>[a-z]+)(?P<operator>[:=])(?P<value>.*)", re.DOTALL)
_NUMBER = re.compile(r"(?P<digits>\d+(?:\.\d+)?)(?P<unit>[kmg]?)")
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": lt,
    "<=": le,
    "=": eq,
    ">=": ge,
    ">": gt,
}
_NUMBERS = ("steps", "tokens", "depth", "hits", "locks", "id", "children")
_WORDS: dict[str, type[StrEnum]] = {"state": State, "why": Why}
_NAMES = ("agent", "client")
_LOCKED = "locked"
_KEYS = (*_WORDS, *_NAMES, *_NUMBERS)


class FilterError(UsageError):
    """A filter that cannot be understood.

    Args:
        text: the whole filter.
        start: where the word begins that is not understood; `end`: where it ends.
        why: what is wrong with it.
        hint: what could be meant.
    """

    def __init__(self, text: str, start: int, end: int, why: str, hint: str = "") -> None:
        super().__init__(f"filter, column {start + 1}: {text[start:end]!r}", why, hint)
        self.start, self.end = start, end


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter that was understood. `parse` makes one.

    Attributes:
        text: what was typed, without spaces around it.
        tests: all of which must be true of a node.
    """

    text: str
    tests: tuple[Test, ...] = ()

    def __bool__(self) -> bool:
        """Whether it leaves anything out."""
        return bool(self.tests)

    def matches(self, node: Node) -> bool:
        """Whether a node is shown."""
        for test in self.tests:  # noqa: SIM110 - all() of a generator takes twice as long
            if not test(node):
                return False
        return True


EVERYTHING: Final = Filter("")


def parse(text: str) -> Filter:
    """Read a filter.

    Raises:
        FilterError: with the place of the word that is not understood.
    """
    tests = []
    for term in _TERM.finditer(text):
        try:
            tests.append(_test(term.group()))
        except _NotUnderstood as error:
            raise FilterError(text, *term.span(), error.why, error.hint) from None
    return Filter(text.strip(), tuple(tests))


class _NotUnderstood(Exception):
    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.why, self.hint = why, hint


def _test(word: str) -> Test:
    if word.startswith("!"):
        if len(word) == 1:
            raise _NotUnderstood("! stands before what must not be so", "such as !locked")
        inner = _test(word[1:])
        return lambda node: not inner(node)
    lower = word.lower()
    if lower == _LOCKED:
        return lambda node: node.locks > 0
    if (match := _TEXTUAL.fullmatch(lower)) and match["key"] in (*_WORDS, *_NAMES):
        return _textual(**match.groupdict())
    if (match := _NUMERIC.fullmatch(lower)) and match["key"] in _NUMBERS:
        return _numeric(**match.groupdict())
    match = _TEXTUAL.fullmatch(lower) or _NUMERIC.fullmatch(lower)
    if match:
        raise _unusable(match["key"], match["operator"], match["value"])
    return _expression(word)


def _textual(key: str, operator: str, value: str) -> Test:
    if not value:
        raise _NotUnderstood(f"{key}{operator} needs a value", _example(key))
    if key in _NAMES:
        return _name(key, operator, value)
    vocabulary = list(_WORDS[key])
    wanted = frozenset(one for part in value.split(",") for one in _among(vocabulary, part, key))
    get = attrgetter(key)
    return lambda node: get(node) in wanted


def _among(vocabulary: list[StrEnum], part: str, key: str) -> Iterable[StrEnum]:
    found = [one for one in vocabulary if part and one.value.startswith(part)]
    if not found:
        close = get_close_matches(part, vocabulary, n=1)
        listed = f"{key} is one of {', '.join(vocabulary)}"
        raise _NotUnderstood(listed, f"did you mean {key}:{close[0]}?" if close else _example(key))
    return found


def _name(key: str, operator: str, value: str) -> Test:
    # Of "client/agent" the client may have a slash itself, as far as anyone can tell.
    place = 2 if key == "agent" else 0
    if operator == "=":
        return lambda node: any(
            agent.lower().rpartition("/")[place] == value for agent in node.agents
        )
    return lambda node: any(value in agent.lower().rpartition("/")[place] for agent in node.agents)


def _numeric(key: str, operator: str, value: str) -> Test:
    number = _NUMBER.fullmatch(value)
    if number is None:
        raise _NotUnderstood(f"{key}{operator} needs a number", _example(key))
    limit = float(number["digits"]) * _UNITS[number["unit"]]
    compare, get = _OPERATORS[operator], attrgetter(key)
    return lambda node: compare(get(node), limit)


def _unusable(key: str, operator: str, value: str) -> _NotUnderstood:
    if key in _KEYS:
        return _NotUnderstood(f"{operator} does not go with {key}", _example(key))
    close = get_close_matches(key, _KEYS, n=1)
    listed = f"a filter knows {', '.join(_KEYS)} and {_LOCKED}"
    return _NotUnderstood(listed, f"did you mean {close[0]}{operator}{value}?" if close else "")


def _expression(word: str) -> Test:
    try:
        with warnings.catch_warnings():
            # Of what may mean something else in a later Python: nobody to tell it to here.
            warnings.simplefilter("ignore", FutureWarning)
            found = re.compile(word, re.IGNORECASE).search
    except (re.error, OverflowError, RecursionError) as error:
        why = error.msg if isinstance(error, re.error) else "it is too large"
        raise _NotUnderstood(f"no regular expression: {why}", "escape it with \\") from None
    return lambda node: found(searched(node)) is not None


def searched(node: Node) -> str:
    """The text of a node in which expressions are looked for."""
    return " ".join((str(node.id), node.state, node.why, *node.agents))


def _example(key: str) -> str:
    if key in _WORDS:
        return f"such as {key}:{next(iter(_WORDS[key]))}"
    return f"such as {key}:planner" if key in _NAMES else f"such as {key}>3"
