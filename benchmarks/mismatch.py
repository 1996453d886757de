"""How often bf16 outputs differ between a hit and a miss: stock SGLang's own rate, and kvflow's.

    python benchmarks/mismatch.py --prompts 24

In float32 outputs are equal (the tests hold that). In bf16 a hit changes the shapes of matrix
products, so ids may differ without anything being wrong; what counts is that kvflow differs no
more often than stock SGLang differs from itself. Slow on CPUs that only emulate bf16.
"""

import argparse
import asyncio
import json
import os
import random

from rich.console import Console

from kvflow.bench.arms import choose
from kvflow.bench.control import steering
from kvflow.bench.fleet import launches, running
from kvflow.bench.regime import Pools
from kvflow.client.exchange import IdsPrompt
from kvflow.client.server import Server, connect
from kvflow.client.tagging import tag
from kvflow.engine.cpu import demo_model
from kvflow.recipe.load import find, load

PREFIX_TOKENS, TAIL_TOKENS, OUTPUT_TOKENS = 32, 8, 8
POOL_TOKENS = 2048
START_S = 300.0


async def ids(server: Server, tokens: list[int], agent: str) -> tuple[int, ...]:
    """The answer of one call, in token ids."""
    hint = tag("mismatch", "none", agent, agent, fixed_tokens=PREFIX_TOKENS, final=True)
    prompt = IdsPrompt(tuple(tokens))
    answer = await server.ask(prompt, max_tokens=OUTPUT_TOKENS, what=agent, tag=hint, exact=True)
    return answer.output_ids or ()


async def answers(url: str, count: int, *, warm: bool) -> list[tuple[int, ...]]:
    """Each prompt's answer, with or without its prefix in the cache."""
    found = []
    async with connect(url) as server, steering(url) as control:
        for number in range(count):
            chance = random.Random(number)
            prefix = chance.choices(range(256), k=PREFIX_TOKENS)
            first, second = (chance.choices(range(256), k=TAIL_TOKENS) for _ in range(2))
            await control.flush()
            if warm:
                await ids(server, prefix + first, f"a{number}")
            found.append(await ids(server, prefix + second, f"a{number}"))
    return found


async def rates(urls: dict[str, str], count: int) -> dict[str, float]:
    """Share of prompts whose ids differ from stock's miss."""
    miss = await answers(urls["hicache"], count, warm=False)
    rows = {
        "stock, miss again": await answers(urls["hicache"], count, warm=False),
        "stock, hit": await answers(urls["hicache"], count, warm=True),
        "kvflow evict, hit": await answers(urls["kvflow"], count, warm=True),
    }
    return {
        name: sum(a != b for a, b in zip(row, miss, strict=True)) / count
        for name, row in rows.items()
    }


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=24)
    parser.add_argument("--dtype", default="bfloat16")
    given = parser.parse_args()
    demo_model.ensure()
    console = Console(stderr=True)
    wanted = launches(
        choose("hicache,evict"),
        load(find("sequential-10")),
        Pools(POOL_TOKENS, POOL_TOKENS),
        device="cpu",
        model=None,
        flags=("--dtype", given.dtype),
        environ=os.environ,
    )
    with console.status("") as status, running(wanted, os.environ, START_S, status.update) as found:
        rows = asyncio.run(rates({name: one.url for name, one in found.items()}, given.prompts))
    print(json.dumps({"dtype": given.dtype, "prompts": given.prompts, "mismatch": rows}, indent=1))


if __name__ == "__main__":
    main()
