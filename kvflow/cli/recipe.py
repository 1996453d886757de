"""`kvflow recipe`: look at recipes, without a server."""

import json
import shutil
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvflow.cli.streams import LastingStderr, shows_pictures
from kvflow.errors import ExitCode, RecipeError, UsageError

if TYPE_CHECKING:
    from kvflow.graph import Graph
    from kvflow.recipe.load import Loaded

SCHEMA_VERSION = 1

app = typer.Typer(
    name="recipe",
    help="Look at recipes, the files that describe workflows.",
    epilog="Start here: kvflow recipe list, then kvflow recipe graph peer",
    no_args_is_help=True,
    rich_markup_mode=None,
)

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the recipes that come with kvflow."""
    from kvflow.recipe.load import catalogue, load

    shipped = [load(path) for path in catalogue()]
    if as_json:
        _write_json({"recipes": [_facts(loaded) for loaded in shipped]})
        return
    wide = max((len(loaded.path.stem) for loaded in shipped), default=0)
    for loaded in shipped:
        sys.stdout.write(f"{loaded.path.stem:{wide}}  {loaded.recipe.description}\n")


@app.command()
def check(
    recipes: Annotated[list[str], typer.Argument(help="Recipe files, or names of shipped ones.")],
    as_json: AsJson = False,
) -> None:
    """Check recipes; all that is wrong is told, with file, line and column.

    Exit code 2 if anything is wrong. Example: kvflow recipe check flows/*.yaml
    """
    from kvflow.recipe.load import find, load

    reports: list[dict[str, Any]] = []
    for name in recipes:
        try:
            loaded = load(find(name))
        except RecipeError as error:
            reports.append({"path": name, "valid": False, "problems": _problems(error)})
            if not as_json:
                LastingStderr().write(f"{error}\n")
        else:
            reports.append({**_facts(loaded), "valid": True})
            if not as_json:
                sys.stdout.write(f"{loaded.path}: valid: {_summary(loaded)}\n")
    if as_json:
        _write_json({"recipes": reports})
    if not all(report["valid"] for report in reports):
        raise typer.Exit(ExitCode.USAGE)


@app.command()
def graph(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of a shipped one.")],
    running: Annotated[
        str, typer.Option(metavar="A,B", help="Agents with a call in flight: shows all steps.")
    ] = "",
    done: Annotated[
        str, typer.Option(metavar="A,B", help="Agents that have finished, in their order.")
    ] = "",
    as_mermaid: Annotated[bool, typer.Option("--mermaid", help="As a Mermaid flowchart.")] = False,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="No box-drawing characters.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw the Agent Step Graph of a recipe, on request with the steps of every agent.

    Example: kvflow recipe graph peer --done planner --running executor
    """
    from kvflow.recipe.draw import draw, mermaid
    from kvflow.recipe.load import find, load

    if as_mermaid + ascii_only + as_json > 1:
        raise UsageError("--mermaid, --ascii and --json exclude each other", hint="give one")
    loaded = load(find(recipe))
    steps = _steps(loaded.graph, _names(done), _names(running))
    if as_json:
        _write_json(_graph_facts(loaded, steps))
    elif as_mermaid:
        sys.stdout.write(mermaid(loaded.graph, steps))
    else:
        columns = shutil.get_terminal_size().columns
        plain = ascii_only or not shows_pictures()
        sys.stdout.write(draw(loaded.graph, steps, width=columns, ascii_only=plain))


@app.command()
def schema() -> None:
    """Print the JSON Schema of recipes, for editors and other programs."""
    from kvflow.recipe.schema import json_schema

    sys.stdout.write(f"{json.dumps(json_schema(), indent=2)}\n")


def _steps(graph: "Graph", done: list[str], running: list[str]) -> dict[str, int] | None:
    """Steps at the moment that the options describe; None if they describe none.

    Raises:
        UsageError: an option names no agent of the graph.
    """
    from kvflow.recipe.problem import did_you_mean
    from kvflow.runs import Run

    for name in (*done, *running):
        if name not in graph.agents:
            raise UsageError(
                f"no agent {name!r} in this recipe{did_you_mean(name, graph.agents)}",
                hint=f"its agents are {', '.join(graph.agents)}",
            )
    return Run.at(graph, done, running).steps() if done or running else None


def _graph_facts(loaded: "Loaded", steps: dict[str, int] | None) -> dict[str, Any]:
    graph = loaded.graph
    written = loaded.recipe.model_dump(mode="json")["agents"]
    agents = [
        {
            "name": name,
            "after": written[name]["after"],
            "fan_out": list(agent.fan_out),
            "terminal": graph.is_terminal(name),
            **({} if steps is None else {"steps": steps[name]}),
        }
        for name, agent in graph.agents.items()
    ]
    arrows = [
        {"source": source, "target": target, "p": p}
        for source in ("start", *graph.agents)
        for target, p in graph.out(source)
    ]
    return {
        "name": loaded.recipe.name,
        "repeat": graph.repeat,
        "agents": agents,
        "arrows": arrows,
    }


def _facts(loaded: "Loaded") -> dict[str, Any]:
    recipe = loaded.recipe
    return {
        "path": str(loaded.path),
        "name": recipe.name,
        "description": recipe.description,
        "agents": {
            name: {
                "fixed_tokens": spec.fixed_tokens,
                "prompt_characters": len(loaded.prompts[name]) if spec.prompt else None,
            }
            for name, spec in recipe.agents.items()
        },
    }


def _summary(loaded: "Loaded") -> str:
    specs = loaded.recipe.agents.values()
    texts = [len(text) for text in loaded.prompts.values()]
    tokens = [spec.fixed_tokens for spec in specs if spec.fixed_tokens is not None]
    parts = [f"{len(specs)} agent{'s' * (len(specs) > 1)}"]
    if texts:
        parts.append(f"prompts of {_range(texts)} characters")
    if tokens:
        parts.append(f"fixed prefixes of {_range(tokens)} tokens")
    return ", ".join(parts)


def _range(values: list[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _problems(error: RecipeError) -> list[dict[str, Any]]:
    from kvflow.recipe.problem import InvalidRecipeError

    if not isinstance(error, InvalidRecipeError):
        return [{"message": error.what}]
    return [
        {
            "file": problem.file,
            "line": problem.mark.line,
            "column": problem.mark.column,
            "at": problem.path,
            "message": problem.message,
        }
        for problem in error.problems
    ]


def _names(option: str) -> list[str]:
    return [name.strip() for name in option.split(",") if name.strip()]


def _write_json(data: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps({'schema_version': SCHEMA_VERSION, **data}, indent=2)}\n")
