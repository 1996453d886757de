"""YAML text to plain data, with the place of every value.

Less than YAML on purpose: keys are text, no aliases (they can blow up), no tags (they can run
code), and a scalar is a number, true, false or null only where all versions of YAML agree, so that
`no`, `010` and `12e4` stay words.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.reader import ReaderError

from kvflow.recipe.problem import Finding, InvalidRecipeError, Location, Mark, Problem

MAX_DEPTH = 100
"""Deepest nesting of a document: reading is recursive."""

_TAG = "tag:yaml.org,2002:"
_FLOAT = r"(?:[-+]?[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?"
_SCALARS: dict[str, tuple[re.Pattern[str], Callable[[str], object]]] = {
    "null": (re.compile(r"(?:~|null|Null|NULL|)\Z"), lambda _: None),
    "bool": (re.compile(r"(?:[tT]rue|TRUE|[fF]alse|FALSE)\Z"), lambda text: text[0] in "tT"),
    "int": (re.compile(r"[-+]?(?:0|[1-9][0-9]{0,3999})\Z"), int),
    "float": (re.compile(_FLOAT + r"\Z"), float),
}


class _RefusedError(yaml.MarkedYAMLError):
    """YAML, but of a kind that a recipe does without."""

    def __init__(self, event: Any, why: str) -> None:
        super().__init__(problem=why, problem_mark=event.start_mark)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}  # noqa: RUF012 - the base class declares it for instances
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _RefusedError(event, "no aliases here: write the value out")
        if self.depth == MAX_DEPTH:
            raise _RefusedError(event, f"nested deeper than {MAX_DEPTH}")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


for _kind, (_pattern, _) in _SCALARS.items():
    _Loader.add_implicit_resolver(_TAG + _kind, _pattern, None)


@dataclass(frozen=True, slots=True)
class Document:
    """A recipe's text, read.

    Attributes:
        file: its name, as problems show it.
        data: dicts with text keys, lists, and scalars.
        values: where each value begins.
        keys: where its key begins, for values in a dict.
    """

    file: str
    data: object
    values: dict[Location, Mark]
    keys: dict[Location, Mark]

    def problem(self, finding: Finding) -> Problem:
        """The finding at its place in the file."""
        at, value = self._find(finding.at)
        on_key = at in self.keys and (finding.on_key or isinstance(value, dict | list))
        mark = self.keys[at] if on_key else self.values[at]
        return Problem(self.file, mark, dotted(at), finding.message)

    def _find(self, location: Location) -> tuple[Location, object]:
        """Down to a value; steps that the file does not spell out are passed over."""
        at: Location = ()
        value: Any = self.data
        for step in location:
            if isinstance(value, dict):
                known = step in value
            else:
                known = isinstance(value, list) and isinstance(step, int) and step < len(value)
            if known:
                at, value = (*at, step), value[step]
        return at, value


def read(text: str, file: str) -> Document:
    """Read YAML.

    Args:
        text: one YAML document.
        file: its name, as problems show it.

    Raises:
        InvalidRecipeError: not YAML, empty, more than one document, a key given twice, or a part of
            YAML that recipes do without.
    """
    try:
        root = _Loader(text).get_single_node()
    except ReaderError as error:
        before = text[: error.position]
        mark = Mark(before.count("\n") + 1, len(before) - before.rfind("\n"))
        message = f"the character U+{error.character:04X} cannot stand in a text file"
        raise InvalidRecipeError([Problem(file, mark, "", message)]) from None
    except yaml.MarkedYAMLError as error:
        prefix = "" if isinstance(error, _RefusedError) else "not YAML: "
        message = prefix + ", ".join(part for part in (error.context, error.problem) if part)
        mark = _mark(error.problem_mark or error.context_mark)
        raise InvalidRecipeError([Problem(file, mark, "", message)]) from None
    if root is None:
        raise InvalidRecipeError([Problem(file, Mark(1, 1), "", "the file is empty")])
    return _Reader(file).document(root)


class _Reader:
    """Nodes to data; notes places, and what recipes do without, on the way."""

    def __init__(self, file: str) -> None:
        self.values: dict[Location, Mark] = {}
        self.keys: dict[Location, Mark] = {}
        self.problems: list[Problem] = []
        self.file = file

    def document(self, root: yaml.Node) -> Document:
        data = self.data(root, ())
        if self.problems:
            raise InvalidRecipeError(self.problems)
        return Document(self.file, data, self.values, self.keys)

    def data(self, node: yaml.Node, at: Location) -> object:
        self.values[at] = _mark(node.start_mark)
        kind = node.tag.removeprefix(_TAG)
        if isinstance(node, yaml.MappingNode) and kind == "map":
            return self.mapping(node, at)
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            return [self.data(item, (*at, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and kind == "str":
            return node.value
        if isinstance(node, yaml.ScalarNode) and kind in _SCALARS:
            return self.scalar(node, at, kind)
        self.refuse(node, at, f"no tags here ({node.tag}): write a plain value")
        return None

    def mapping(self, node: yaml.MappingNode, at: Location) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.refuse(key, at, "a key should be plain text")
            elif key.value in found:
                first = self.keys[(*at, key.value)]
                self.refuse(key, (*at, key.value), f"given twice, first in line {first.line}")
            else:
                self.keys[(*at, key.value)] = _mark(key.start_mark)
                found[key.value] = self.data(value, (*at, key.value))
        return found

    def scalar(self, node: yaml.ScalarNode, at: Location, kind: str) -> object:
        pattern, convert = _SCALARS[kind]
        if pattern.match(node.value):
            return convert(node.value)
        # Only a tag written out claims a kind that the text is not.
        self.refuse(node, at, f"{node.value!r} is no {kind}")
        return None

    def refuse(self, node: yaml.Node, at: Location, message: str) -> None:
        self.problems.append(Problem(self.file, _mark(node.start_mark), dotted(at), message))


def dotted(at: Location) -> str:
    """A location as people write it: `agents.planner.after.any[1]`."""
    text = ""
    for step in at:
        plain = isinstance(step, str) and re.fullmatch(r"[\w-]+", step)
        text += f".{step}" if plain else f"[{step!r}]"
    return text.removeprefix(".")


def _mark(mark: Any) -> Mark:
    """Ours from PyYAML's, which counts from 0 (and is of two unrelated classes)."""
    return Mark(mark.line + 1, mark.column + 1)
