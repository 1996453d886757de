"""`kvflow bench`: what kvflow buys on this box for this workflow, and comparing two results."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from kvflow.cli import sglang_flags

_DEFAULT = "run"
_RECIPES = "the recipe's"


class Group(TyperGroup):
    """Takes `kvflow bench RECIPE` for `kvflow bench run RECIPE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default subcommand in front where none is named."""
        if not args or args[0] not in self.commands:
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="bench",
    cls=Group,
    help="Say what kvflow buys on this box for a workflow; `run` may be left out.",
    rich_markup_mode=None,
)


@app.command(_DEFAULT, cls=sglang_flags.Command)
def command(
    ctx: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            help="A recipe (file, or name of a shipped one), or a suite: paper-single, "
            "paper-peer, concurrent, mixed, wrong-hints."
        ),
    ],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick/--thorough",
            help="Quick: stock HiCache and the recipe's mode, minutes. Thorough: stock LRU and "
            "the limit as well, all runs of the recipe.",
        ),
    ] = True,
    arms: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help="Of lru, hicache, limit, off, evict, prefetch, full; or all."
        ),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Turns of each arm.", show_default="5")
    ] = None,
    pool_ratio: Annotated[
        str | None,
        typer.Option(
            metavar="R,R",
            help="Device pool over all fixed prompts; several make several settings.",
            show_default="0.43 on a CPU; on a GPU what SGLang takes",
        ),
    ] = None,
    link_ratio: Annotated[
        str | None,
        typer.Option(
            metavar="R,R",
            help="Time to load a prompt over time to recompute it; CPU engine only.",
            show_default="0.5",
        ),
    ] = None,
    fixed: Annotated[
        int | None,
        typer.Option(
            min=1, help="Synthetic fixed prompts of so many tokens.", show_default=_RECIPES
        ),
    ] = None,
    dynamic: Annotated[
        str | None,
        typer.Option(metavar="N|LOW..HIGH", help="Tokens after it.", show_default=_RECIPES),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(metavar="N,N", help="Tokens of each answer.", show_default=_RECIPES),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Measured runs of a turn.",
            show_default="one for each run at once; --thorough: the recipe's",
        ),
    ] = None,
    concurrency: Annotated[
        str | None, typer.Option(metavar="N,N", help="Runs at once.", show_default=_RECIPES)
    ] = None,
    scale: Annotated[
        Literal["cpu", "full"] | None,
        typer.Option(
            help="Sizes of a suite: as in the paper, or smaller at the same ratios.",
            show_default="by the device",
        ),
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Of several settings, those with TEXT in their name.",
            show_default="all",
        ),
    ] = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        typer.Option(envvar="KVFLOW_DEVICE", help="auto: cuda where an NVIDIA GPU is visible."),
    ] = "auto",
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="Model path or name; on a CPU a built-in one if absent."
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="Bench a server that runs, between kvflow's modes; its cache is emptied. "
            "KVFLOW_API_KEY holds its key."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="What one call may take.")
    ] = 120.0,
    goodput: Annotated[
        str | None,
        typer.Option(metavar="LIMITS", help="Count good calls too, such as 'ttft:300 e2el:2000'."),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="Exit 5 if it holds: 'full/hicache < 1.0'."),
    ] = None,
    form: Annotated[
        Literal["table", "json", "csv", "md"], typer.Option("--format", help="Of stdout.")
    ] = "table",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Folder for report, pictures and requests.",
            show_default="results/TIME-NAME",
        ),
    ] = None,
) -> None:
    """Measure what kvflow buys: arms in turns, intervals, and a verdict in words.

    SGLang's own flags follow --, for all arms alike.

    Example: kvflow bench sequential-10 --arms hicache,prefetch,limit
    """
    from kvflow.cli import bench_request, bench_session

    request = bench_request.Request(
        target=target,
        quick=quick,
        arms=arms,
        repeats=repeats,
        pool_ratio=pool_ratio,
        link_ratio=link_ratio,
        fixed=fixed,
        dynamic=dynamic,
        output=output,
        runs=runs,
        concurrency=concurrency,
        scale=scale,
        only=only,
        device=device,
        model=model,
        url=url,
        timeout_s=timeout,
        sglang_flags=tuple(ctx.args),
    )
    code = bench_session.bench(
        request, limits=goodput, conditions=fail_if or [], form=form, out=out
    )
    if code:
        raise typer.Exit(code)


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(help="A results folder, or JSON of a bench.")],
    after: Annotated[Path, typer.Argument(help="Another one.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Compare two results: which arms have become faster or slower.

    Example: kvflow bench compare results/before results/after
    """
    from kvflow.cli import bench_compare

    bench_compare.show(before, after, as_json=as_json)


@app.command()
def schema(
    timeline: Annotated[bool, typer.Option("--timeline", help="Of timeline.json instead.")] = False,
) -> None:
    """Print the JSON Schema of results, for other programs.

    Example: kvflow bench schema --timeline
    """
    import json

    from kvflow.bench import result, watched

    made = watched.json_schema() if timeline else result.json_schema()
    sys.stdout.write(f"{json.dumps(made, indent=2)}\n")
