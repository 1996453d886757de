"""Writes the reference part of docs/recipes.md from the JSON Schema of recipes.

python scripts/recipe_reference.py          write it
python scripts/recipe_reference.py --check  only say whether it is up to date (exit code 1)
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kvflow.recipe.schema import json_schema

PAGE = Path(__file__).parents[1] / "docs" / "recipes.md"
BEGIN = "<!-- reference: made by scripts/recipe_reference.py, do not edit -->"
END = "<!-- end of reference -->"

# The order of the page: as a recipe is read, what is inside after what it is in.
_PARTS = {
    "Recipe": "The file",
    "AgentSpec": "`agents.<name>`",
    "AnyOf": "`after`: a branch",
    "AllOf": "`after`: a barrier",
    "Alternative": "`after`: an alternative",
    "SharedPrefix": "`agents.<name>.shared_prefix`",
    "WorkloadSpec": "`workload`",
    "EngineSpec": "`engine`",
    "PolicySpec": "`policy`",
}


def reference() -> str:
    """The reference in Markdown: a table for each part of a recipe."""
    schema = json_schema()
    parts = {"Recipe": schema, **schema["$defs"]}
    return "\n".join(line for name, title in _PARTS.items() for line in _part(title, parts[name]))


def page_with(text: str, page: str) -> str:
    """The page with another reference between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{text}\n{END}{after}"


def _part(title: str, part: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"### {title}", "", part["description"], "")
    yield from ("| key | takes | default | meaning |", "|---|---|---|---|")
    for key, field in part["properties"].items():
        default = _default(field) if key not in part.get("required", ()) else "required"
        meaning = field["description"].replace("|", "\\|")
        yield f"| `{key}` | {_takes(field)} | {default} | {meaning} |"
    yield ""


def _default(field: Mapping[str, Any]) -> str:
    value = field.get("default")
    return "" if value in (None, "") or isinstance(value, dict) else f"`{json.dumps(value)}`"


def _takes(field: Mapping[str, Any]) -> str:
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "anyOf" in field:
        kinds = [_takes(kind) for kind in field["anyOf"] if kind != {"type": "null"}]
        return ", or ".join(dict.fromkeys(kinds))
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return "name, list, branch, barrier, alternative" if name == "After" else _PARTS[name]
    return _plain(field)


def _plain(field: Mapping[str, Any]) -> str:
    kind = field["type"]
    if kind == "array":
        return f"list of: {_takes(field['items'])}"
    if kind == "object":
        values = [*field.get("patternProperties", {}).values(), field.get("additionalProperties")]
        return f"names, each with {_takes(values[0])}"
    if kind == "string" and r"\.\." in field.get("pattern", ""):
        return "a range such as `1..4`"
    name = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "true or false",
    }[kind]
    for bound, word in (("minimum", "from"), ("exclusiveMinimum", "above"), ("maximum", "to")):
        if bound in field:
            name += f" {word} {field[bound]}"
    return name


def main(arguments: list[str]) -> int:
    """Write the page, or with --check compare it; the exit code."""
    page = PAGE.read_text(encoding="utf-8")
    wanted = page_with(reference(), page)
    if arguments == ["--check"]:
        if page == wanted:
            return 0
        print(f"{PAGE} is out of date: run python scripts/recipe_reference.py", file=sys.stderr)
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
