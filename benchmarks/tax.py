"""What kvflow costs traffic that has nothing to do with agents, against stock SGLang.

    python benchmarks/tax.py --concurrency 1 8 32 --repeats 8

Two servers on the CPU engine with the same flags: stock (SGLang's Rust tree) and kvflow. The same
untagged prompts go to both in turns, block by block; ratios are within a pair of blocks.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import time

from rich.console import Console
from rich.table import Table

from kvflow.bench.arms import choose
from kvflow.bench.fleet import launches, running
from kvflow.bench.regime import Pools
from kvflow.bench.stats import paired
from kvflow.client.exchange import IdsPrompt
from kvflow.client.server import Server, connect
from kvflow.engine.cpu import demo_model
from kvflow.recipe.load import find, load

POOL_TOKENS = 16_384
SYSTEMS, SYSTEM_TOKENS, USER_TOKENS, OUTPUT_TOKENS = 8, 192, 48, 16
START_S = 300.0


def prompts(seed: int, count: int) -> list[IdsPrompt]:
    """Chat-like prompts: one of a few shared beginnings, and an end of its own."""
    chance = random.Random(seed)
    shared = [random.Random(n).choices(range(256), k=SYSTEM_TOKENS) for n in range(SYSTEMS)]
    return [
        IdsPrompt((*chance.choice(shared), *chance.choices(range(256), k=USER_TOKENS)))
        for _ in range(count)
    ]


async def block(server: Server, todo: list[IdsPrompt], concurrency: int) -> tuple[float, float]:
    """Mean time to first token, and seconds a call (the inverse of throughput)."""
    waiting = iter(todo)
    ttfts: list[float] = []

    async def lane() -> None:
        for prompt in waiting:
            answer = await server.ask(prompt, max_tokens=OUTPUT_TOKENS, what="call", exact=True)
            ttfts.append(answer.ttft_s)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as lanes:
        for _ in range(concurrency):
            lanes.create_task(lane())
    return statistics.fmean(ttfts), (time.perf_counter() - began) / len(todo)


async def compare(urls: dict[str, str], mode: str, given: argparse.Namespace) -> list[dict]:
    """Rows of the result: one a concurrency and metric."""
    rows = []
    async with connect(urls["hicache"]) as stock, connect(urls["kvflow"]) as ours:
        for concurrency in given.concurrency:
            pairs: dict[str, list[tuple[float, float]]] = {"ttft": [], "seconds a call": []}
            for repeat in range(-1, given.repeats):  # the first warms both up
                todo = prompts(1000 * concurrency + repeat, max(12, 2 * concurrency))
                pair = [
                    (server, await block(server, todo, concurrency))
                    for server in ((stock, ours) if repeat % 2 else (ours, stock))
                ]
                measured = {server is ours: times for server, times in pair}
                if repeat >= 0:
                    for index, metric in enumerate(pairs):
                        pairs[metric].append((measured[False][index], measured[True][index]))
            for metric, values in pairs.items():
                theirs, own = zip(*values, strict=True)
                middle, low, high = paired(own, theirs)
                rows.append(
                    {
                        "mode": mode,
                        "concurrency": concurrency,
                        "metric": metric,
                        "ratio": middle,
                        "low": low,
                        "high": high,
                        "stock_ms": 1e3 * statistics.median(s for s, _ in values),
                    }
                )
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--mode", choices=["evict", "prefetch", "full"], default="prefetch")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    demo_model.ensure()
    console = Console(stderr=True)
    wanted = launches(
        choose(f"hicache,{given.mode}"),
        load(find("sequential-10")),
        Pools(POOL_TOKENS, POOL_TOKENS),
        device="cpu",
        model=None,
        environ=os.environ,
    )
    with console.status("") as status, running(wanted, os.environ, START_S, status.update) as found:
        urls = {family: station.url for family, station in found.items()}
        rows = asyncio.run(compare(urls, given.mode, given))
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    shown = Table("mode", "at once", "metric", "stock ms", "stock / kvflow", "95 %")
    for row in rows:
        interval = f"{row['low']:.3f} .. {row['high']:.3f}"
        shown.add_row(
            row["mode"],
            str(row["concurrency"]),
            row["metric"],
            f"{row['stock_ms']:.0f}",
            f"{row['ratio']:.3f}",
            interval,
        )
    Console().print(shown)


if __name__ == "__main__":
    main()
