"""What the plugin is told: KVFLOW_CONFIG, inherited by every SGLang process.

Inline JSON, or `@file` that holds it: `{"mode": ..., "policy": {...}, "recipe": {...}}`, all
optional. The recipe is as in a recipe file, except that `prompt` holds the text itself.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from kvflow.errors import UsageError
from kvflow.recipe.model import Mode, PolicySpec, Recipe

VARIABLE = "KVFLOW_CONFIG"
DEFAULT_MODE: Mode = "prefetch"
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Settings:
    """The plugin's settings.

    Attributes:
        mode: how much of kvflow is at work; can be changed on a running server.
        policy: the recipe's tuning.
        recipe: the workflow that is served, prompts inlined; None without one.
    """

    mode: Mode = DEFAULT_MODE
    policy: PolicySpec = field(default_factory=PolicySpec)
    recipe: Recipe | None = None


def from_environment(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings; without the variable the defaults.

    Raises:
        UsageError: not JSON, or not settings.
    """
    text = environ.get(VARIABLE, "")
    if not text.strip():
        return Settings()
    try:
        return _parse(json.loads(_read(Path(text[1:])) if text.startswith("@") else text))
    except (ValueError, ValidationError) as error:
        raise UsageError(
            f"{VARIABLE} cannot be used", str(error), "kvflow serve --dry-run shows a good one"
        ) from error


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise UsageError(f"{VARIABLE} names a file that cannot be read", str(error)) from error


def _parse(raw: Any) -> Settings:
    if not isinstance(raw, dict) or not raw.keys() <= {"mode", "policy", "recipe"}:
        raise ValueError("expected a map of mode, policy and recipe")
    recipe = raw.get("recipe")
    return Settings(
        mode=to_mode(raw.get("mode", DEFAULT_MODE)),
        policy=PolicySpec.model_validate(raw.get("policy", {})),
        recipe=None if recipe is None else Recipe.model_validate(recipe),
    )


def to_mode(mode: object) -> Mode:
    """The mode of this name.

    Raises:
        ValueError: no such mode.
    """
    for known in MODES:
        if mode == known:
            return known
    raise ValueError(f"no mode {mode!r}: it is one of {', '.join(MODES)}")
