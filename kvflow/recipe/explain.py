"""What pydantic found wrong with a recipe, in the words of recipes."""

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kvflow.recipe.model import SHAPES, Recipe
from kvflow.recipe.problem import MAX_SHOWN, Finding, did_you_mean

_MESSAGES = {
    "too_short": "should not be empty",
    "string_too_short": "should not be empty",
    "too_long": "has too many entries",
    "model_type": "should be a mapping of keys to values",
    "dict_type": "should be a mapping of keys to values",
    "list_type": "should be a list",
    "string_type": "should be text",
    "int_type": "should be a whole number",
    "float_type": "should be a number",
    "bool_type": "should be true or false",
}


def findings(error: ValidationError) -> list[Finding]:
    """One finding for each of the first MAX_SHOWN errors, in pydantic's order."""
    return [_finding(detail) for detail in error.errors(include_url=False)[:MAX_SHOWN]]


def _finding(detail: ErrorDetails) -> Finding:
    at, kind = detail["loc"], detail["type"]
    if kind == "missing":
        return Finding(at[:-1], f"the key {at[-1]!r} is missing")
    if kind == "extra_forbidden":
        return Finding(at, _unknown_key(str(at[-1]), list(_fields(at))), on_key=True)
    if kind == "value_error":
        # "[key]" is pydantic's word for the key of an entry.
        return Finding(at, str(detail["ctx"]["error"]), on_key=at[-1:] == ("[key]",))
    message = _MESSAGES.get(kind, detail["msg"].removeprefix("Input "))
    return Finding(at, message + _given(detail["input"]))


def _given(value: object) -> str:
    shown = repr(value) if value != "" and isinstance(value, str | int | float) else ""
    return f", not {shown}" if 0 < len(shown) <= 80 else ""


def _unknown_key(key: str, known: list[str]) -> str:
    close = did_you_mean(key, known)
    return f"unknown key {key!r}" + (close or f" (known here: {', '.join(known)})")


def _fields(at: tuple[int | str, ...]) -> Iterator[str]:
    """The keys known in the mapping that holds the last step of a location."""
    model: type[BaseModel] = Recipe
    steps = iter(at[:-1])
    for step in steps:
        if step in SHAPES:
            model = SHAPES[str(step)]
        elif field := model.model_fields.get(str(step)):
            model = next(_models(field.annotation), model)
            if get_origin(field.annotation) is dict:
                next(steps, None)
    return iter(model.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
