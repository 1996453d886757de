"""The JSON Schema of a recipe, for editors and other programs."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from kvflow.recipe.model import Recipe
from kvflow.recipe.ranges import Range


class _Generate(GenerateJsonSchema):
    def encode_default(self, dft: Any) -> Any:
        # A default stands in the schema as a recipe would write it.
        return dft.written() if isinstance(dft, Range) else super().encode_default(dft)


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a recipe file."""
    schema = Recipe.model_json_schema(schema_generator=_Generate)
    return {"$schema": _Generate.schema_dialect, **schema}
