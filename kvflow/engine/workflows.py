"""Workflows that applications register, as the HTTP process knows them.

It checks what comes in, and remembers names and graphs; schedulers hold what they need of it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from kvflow.engine.http_errors import ControlError
from kvflow.graph import Graph
from kvflow.recipe.check import check
from kvflow.recipe.convert import to_graph
from kvflow.recipe.model import Recipe

MOST_BYTES = 8 << 20
"""Largest body of a registration."""

MOST_WORKFLOWS = 1024

MOST_TOKENS = 1 << 22
"""Tokens of all registered prompts together; a scheduler keeps 8 bytes of each."""

_SHOWN = 10  # problems of one recipe
_SHAPE = 'expected {"client": NAME, "recipe": {...}}, prompts inline'


class _Known(NamedTuple):
    graph: Graph
    prefix_tokens: Mapping[str, int]


class Workflows:
    """The registered workflows by (client, name)."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Known] = {}

    def add(self, client: str, recipe: Recipe, prefix_tokens: Mapping[str, int]) -> None:
        """A workflow has been registered, or replaced."""
        self._known[client, recipe.name] = _Known(to_graph(recipe), dict(prefix_tokens))

    def remove(self, client: str, name: str) -> None:
        """A client takes back a workflow.

        Raises:
            ControlError: 404, it has none of that name.
        """
        if self._known.pop((client, name), None) is None:
            raise ControlError(
                404,
                f"client {client!r} has no workflow {name!r}",
                hint="GET /kvflow/workflows lists them",
            )

    def check_room(self, client: str, name: str, prefix_tokens: Mapping[str, int]) -> None:
        """Refuse what is too much.

        Raises:
            ControlError: 413, beyond one of the limits of this module.
        """
        others = {key: known for key, known in self._known.items() if key != (client, name)}
        if len(others) >= MOST_WORKFLOWS:
            raise _too_much(f"{len(others)} workflows are registered, at most {MOST_WORKFLOWS}")
        tokens = sum(sum(known.prefix_tokens.values()) for known in others.values())
        new = sum(prefix_tokens.values())
        if tokens + new > MOST_TOKENS:
            raise _too_much(f"prompts of {tokens} + {new} tokens, at most {MOST_TOKENS} in all")

    def listed(self, served: Recipe | None) -> list[dict[str, Any]]:
        """Names, agents and edges; the served recipe first, whose client is null."""
        found = [] if served is None else [_row(None, served.name, _Known(to_graph(served), {}))]
        return found + [_row(*key, known) for key, known in self._known.items()]


def read(body: object) -> tuple[str, Recipe]:
    """Client and recipe of a registration.

    Raises:
        ControlError: 400, it is none, with what is wrong in it.
    """
    if not isinstance(body, dict) or body.keys() != {"client", "recipe"}:
        raise ControlError(400, "this is no registration", hint=_SHAPE)
    client = body["client"]
    if not isinstance(client, str):
        raise ControlError(400, "client is no text", hint=_SHAPE)
    try:
        recipe = Recipe.model_validate(body["recipe"])
    except ValidationError as error:
        raise _no_recipe(_places(error)) from error
    except RecursionError as error:
        raise _no_recipe("nested too deeply") from error
    if found := check(recipe):
        raise _no_recipe("; ".join(f"{_path(one.at)}: {one.message}" for one in found[:_SHOWN]))
    return client, recipe


def _no_recipe(why: str) -> ControlError:
    return ControlError(
        400, "this recipe cannot be used", why, "kvflow recipe schema prints every key"
    )


def _too_much(why: str) -> ControlError:
    return ControlError(
        413, "there is no room for this workflow", why, "DELETE /kvflow/workflows/CLIENT/NAME"
    )


def _places(error: ValidationError) -> str:
    told = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{_path(one['loc'])}: {one['msg']}" for one in told[:_SHOWN])


def _path(at: tuple[str | int, ...]) -> str:
    return ".".join(str(part)[:64] for part in at) or "recipe"


def _row(client: str | None, name: str, known: _Known) -> dict[str, Any]:
    graph = known.graph
    return {
        "client": client,
        "name": name,
        "repeat": graph.repeat,
        "agents": list(graph.agents),
        "edges": [
            {"from": source, "to": out.target, "p": out.p}
            for source in ("start", *graph.agents)
            for out in graph.out(source)
        ],
        "prefix_tokens": dict(known.prefix_tokens),
    }
