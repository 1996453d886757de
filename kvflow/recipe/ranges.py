"""Whole numbers that a recipe may give as a range, `1..4`: fan-outs and lengths."""

import re
from dataclasses import dataclass
from typing import Any, Self

from pydantic import AfterValidator, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

_RANGE = r"^([0-9]{1,9})(?: *\.\. *([0-9]{1,9}))?$"


@dataclass(frozen=True, slots=True)
class Range:
    """A whole number, or `low..high` (both ends count).

    Raises:
        ValueError: the range runs backwards.
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"{self} runs backwards: write {self.high}..{self.low}")

    @classmethod
    def read(cls, value: object) -> Self:
        """The range that a recipe writes as `4` or `1..4`.

        Raises:
            ValueError: `value` is neither a whole number from 0 nor such a range.
        """
        if isinstance(value, cls):
            return value
        plain = isinstance(value, int | str) and not isinstance(value, bool)
        match = re.fullmatch(_RANGE, str(value)) if plain else None
        if match is None:
            raise ValueError(f"{value!r} is neither a whole number nor a range such as 1..4")
        return cls(int(match[1]), int(match[2] or match[1]))

    @property
    def is_one(self) -> bool:
        """Whether the range holds a single number."""
        return self.low == self.high

    def __str__(self) -> str:
        return str(self.low) if self.is_one else f"{self.low}..{self.high}"

    def written(self) -> int | str:
        """As a recipe writes it; the inverse of `read`."""
        return self.low if self.is_one else str(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A recipe writes a range as one scalar, so it is read and written as one."""
        return core_schema.no_info_plain_validator_function(
            cls.read,
            serialization=core_schema.plain_serializer_function_ser_schema(cls.written),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """What an editor may offer: a number, or text of the form `low..high`."""
        return {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": _RANGE}]}


def within(least: int, most: int, why: str) -> AfterValidator:
    """Bounds for a range; `why` ends the sentence that refuses another one."""

    def bounded(value: Range) -> Range:
        if value.low < least or value.high > most:
            raise ValueError(f"should lie in {least}..{most}: {why}")
        return value

    return AfterValidator(bounded)
