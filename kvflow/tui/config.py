"""What a person has chosen for `kvflow top` once and for all: keys, and presets by name.

    keymap:
      view.filter: f               # an id of docs/top.md: one key or several, f,slash
    presets:
      night:
        filter: state:host steps<3
        sort: -tokens
        panels: [charts, evictions]
        interval: 5                # seconds

Knows no Textual: which keys there are is checked where there are keys (`screen.keymap`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from platformdirs import user_config_path

from kvflow.errors import UsageError
from kvflow.recipe.document import Document, read
from kvflow.recipe.problem import Finding, InvalidRecipeError, Location, Mark, Problem, did_you_mean
from kvflow.tui.filter import Filter
from kvflow.tui.filter import parse as parse_filter
from kvflow.tui.rows import Sort
from kvflow.tui.source import LEAST_INTERVAL_S, MOST_INTERVAL_S

PANELS: Final = ("charts", "agents", "queue", "evictions", "machine")
"""What can be shown beside the tree, in the order of their digits."""
_MAX_BYTES = 100_000


class ConfigError(UsageError):
    """A file that cannot be used. Each line of `what` begins with file:line:col.

    Args:
        problems: at least one.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        ordered = sorted(problems, key=lambda problem: problem.mark)
        # Continuation lines stand under the first one, behind the "error: " before it.
        super().__init__(
            "\n       ".join(map(str, ordered)),
            hint="docs/top.md says what can stand in it",
        )


@dataclass(frozen=True, slots=True)
class Preset:
    """What is chosen in one go; None leaves a thing as it is.

    Attributes:
        filter: which nodes are shown.
        sort: of the tree.
        panels: all that are shown beside the tree.
        interval_s: seconds between two frames.
    """

    filter: Filter | None = None
    sort: Sort | None = None
    panels: tuple[str, ...] | None = None
    interval_s: float | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """A file that was read.

    Attributes:
        path: where it is, or would be.
        presets: by name.
        keymap: keys by the id of what they do, not checked.
        document: the file, for problems that are found later; None without a file.
    """

    path: Path
    presets: Mapping[str, Preset] = field(default_factory=lambda: MappingProxyType({}))
    keymap: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    document: Document | None = None

    def preset(self, name: str) -> Preset:
        """A preset by its name.

        Raises:
            UsageError: there is none.
        """
        if name in self.presets:
            return self.presets[name]
        known = ", ".join(self.presets) or "none"
        raise UsageError(
            f"no preset {name!r}{did_you_mean(name, self.presets)}",
            f"presets in {self.path}: {known}",
        )

    def refused(self, findings: Sequence[Finding]) -> ConfigError:
        """The error that tells these, at their places in the file."""
        assert self.document is not None
        return ConfigError([self.document.problem(finding) for finding in findings])


def default_path() -> Path:
    """Where the file is looked for."""
    return user_config_path("kvflow") / "top.yaml"


def load(path: Path | None) -> Config:
    """Read the file.

    Args:
        path: one that must be there; None for the one at `default_path`, if it is.

    Raises:
        UsageError: it cannot be read.
        ConfigError: its text is wrong; all that can be told at once is told at once.
    """
    given = path or default_path()
    if path is None and not given.exists():
        return Config(given)
    text = _text(given)
    if all(line.strip().startswith("#") or not line.strip() for line in text.splitlines()):
        return Config(given)
    try:
        document = read(text, str(given))
    except InvalidRecipeError as error:
        raise ConfigError(error.problems) from None
    return _Checked(document).config(given)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}", error.strerror or str(error)) from None
    if len(raw) > _MAX_BYTES:
        raise UsageError(f"{path} is larger than {_MAX_BYTES:,} bytes", "it holds keys and presets")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        mark = Mark(before.count(b"\n") + 1, len(before) - before.rfind(b"\n"))
        raise ConfigError([Problem(str(path), mark, "", "not UTF-8 text")]) from None


class _Checked:
    """A document's data as what they mean; notes on the way what makes no sense."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._findings: list[Finding] = []

    def config(self, path: Path) -> Config:
        top = self._mapping((), self._document.data, ("keymap", "presets"))
        presets = {
            name: self._preset(("presets", name), given)
            for name, given in self._mapping(("presets",), top.get("presets", {})).items()
        }
        keymap = {
            name: self._keys(("keymap", name), given)
            for name, given in self._mapping(("keymap",), top.get("keymap", {})).items()
        }
        config = Config(path, MappingProxyType(presets), MappingProxyType(keymap), self._document)
        if self._findings:
            raise config.refused(self._findings)
        return config

    def _mapping(
        self, at: Location, given: object, known: Sequence[str] | None = None
    ) -> dict[str, Any]:
        if not isinstance(given, dict):
            self._refuse(at, "should be a mapping of names to values")
            return {}
        for name in given:
            if known is not None and name not in known:
                close = did_you_mean(name, known) or f" (known here: {', '.join(known)})"
                self._findings.append(Finding((*at, name), f"unknown key {name!r}{close}", True))
        return given

    def _preset(self, at: Location, given: object) -> Preset:
        readers: dict[str, Callable[[Location, Any], Any]] = {
            "filter": lambda at, text: self._understood(at, text, parse_filter),
            "sort": lambda at, text: self._understood(at, text, Sort.parse),
            "panels": self._panels,
            "interval": self._interval,
        }
        found = {
            name: readers[name]((*at, name), value)
            for name, value in self._mapping(at, given, tuple(readers)).items()
            if name in readers
        }
        return Preset(
            found.get("filter"), found.get("sort"), found.get("panels"), found.get("interval")
        )

    def _understood(self, at: Location, given: object, parse: Callable[[str], Any]) -> Any:
        if not isinstance(given, str):
            self._refuse(at, "should be text")
            return None
        try:
            return parse(given)
        except UsageError as error:
            hint = f" ({error.hint})" if error.hint else ""
            self._refuse(at, f"{error.what}: {error.why}{hint}")
            return None

    def _panels(self, at: Location, given: object) -> tuple[str, ...] | None:
        if not isinstance(given, list):
            self._refuse(at, f"should be a list of {', '.join(PANELS)}")
            return None
        for place, name in enumerate(given):
            if name not in PANELS:
                close = did_you_mean(str(name), PANELS) or f" (there are {', '.join(PANELS)})"
                self._refuse((*at, place), f"no panel {name!r}{close}")
        return tuple(given)

    def _interval(self, at: Location, given: object) -> float | None:
        if isinstance(given, bool) or not isinstance(given, int | float):
            self._refuse(at, "should be a number of seconds")
            return None
        if not LEAST_INTERVAL_S <= given <= MOST_INTERVAL_S:
            limits = f"{LEAST_INTERVAL_S:g} to {MOST_INTERVAL_S:g}"
            self._refuse(at, f"should be {limits} seconds, not {given}")
        return float(given)

    def _keys(self, at: Location, given: object) -> str:
        digit = isinstance(given, int) and not isinstance(given, bool)  # 5 is a key as f is
        if not isinstance(given, str) and not digit:
            self._refuse(at, "should be a key, or several with commas between them")
        return str(given)

    def _refuse(self, at: Location, message: str) -> None:
        self._findings.append(Finding(at, message))
