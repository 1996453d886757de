"""What each part of kvflow buys on this machine: one workflow, arm by arm, at given ratios.

    python benchmarks/arms.py --pool 0.43 0.86 --load 0.1 0.5 1.0 --repeats 5 --out results/

Runs the CPU engine (emulated link). Arms: `lru` and `hicache` are stock SGLang without and with a
host tier, `limit` is stock with room for everything, `evict`, `prefetch` and `full` are kvflow's
modes. Arms take turns within a repeat, each with fresh filler and warm rounds of its own; ratios
are within a repeat, so that what the machine does meanwhile falls out.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
from rich.console import Console
from rich.table import Table

from kvflow.client.drive import Settings, drive
from kvflow.client.exchange import IdsPrompt
from kvflow.client.records import Result
from kvflow.client.server import connect
from kvflow.engine.cpu import demo_model
from kvflow.engine.launch import Options, Server, build
from kvflow.recipe.load import Loaded, find, load

STOCK = ("lru", "hicache", "limit")
MODES = ("evict", "prefetch", "full")
SPARE_TOKENS = 2048  # the limit's pool beyond all prefixes
FIRST_PORT = 31200
console = Console(stderr=True)


@dataclass(frozen=True)
class Sample:
    """One arm in one repeat of one setting. Times in milliseconds, means over calls or runs."""

    pool: float
    load: float
    output: int
    concurrency: int
    repeat: int
    arm: str
    ttft_ms: float
    latency_ms: float
    run_ms: float
    device_share: float  # of fixed-prefix tokens
    host_share: float


def options(arm: str, port: int, pool_tokens: int, flags: tuple[str, ...]) -> Options:
    """How an arm's server is started; the modes share one."""
    return Options(
        device="cpu",
        port=port,
        with_plugin=arm in MODES,
        mode="evict" if arm in MODES else None,
        host_tier=arm not in ("lru", "limit"),
        sglang_flags=("--max-total-tokens", str(pool_tokens), *flags),
    )


@contextlib.contextmanager
def servers(
    loaded: Loaded,
    arms: list[str],
    pool_tokens: int,
    all_tokens: int,
    link: Path,
    flags: tuple[str, ...] = (),
) -> Iterator[dict[str, str]]:
    """A server for each stock arm and one for the modes; URLs by arm."""
    environ = {**os.environ, "KVFLOW_LINK_GBPS": f"@{link}"}
    families = [arm for arm in arms if arm in STOCK] + [arm for arm in arms if arm in MODES][:1]
    urls: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for number, arm in enumerate(families):
            tokens = all_tokens if arm == "limit" else pool_tokens
            launch = build(options(arm, FIRST_PORT + number, tokens, flags), loaded, environ)
            server = stack.enter_context(Server(launch, folder / f"{arm}.log", environ))
            for _ in server.progress(300):
                pass
            console.print(f"{arm}: {launch.url}, {tokens} tokens")
            urls |= dict.fromkeys(MODES if arm in MODES else (arm,), launch.url)
        yield urls


async def switch(url: str, arm: str) -> None:
    """Put a mode to work and empty the cache."""
    async with httpx2.AsyncClient(timeout=60) as http:
        for _ in range(200):  # SGLang refuses while copies are in flight
            if (await http.post(f"{url}/flush_cache")).status_code == 200:
                break
            await asyncio.sleep(0.1)
        if arm in MODES:
            (await http.patch(f"{url}/kvflow/policy", json={"mode": arm})).raise_for_status()


async def recompute_seconds(url: str, tokens: int, tries: int = 5) -> float:
    """What computing a prefix costs: a miss's time to first token less a hit's."""
    async with connect(url) as server:
        chance, misses, hits = random.Random(time.time_ns()), [], []
        for number in range(tries):
            prefix = chance.choices(range(256), k=tokens)
            for times in (misses, hits):
                prompt = IdsPrompt((*prefix, *chance.choices(range(256), k=32)))
                answer = await server.ask(prompt, max_tokens=1, what=str(number), exact=True)
                times.append(answer.ttft_s)
    return statistics.median(misses) - statistics.median(hits)


async def measure(loaded: Loaded, url: str, name: str, runs: int, concurrency: int) -> Result:
    """Drive some runs with filler of their own."""
    # One client throughout: a client that stops leaves a run that is expected for a while.
    settings = Settings(
        client="bench",
        runs=runs,
        concurrency=concurrency,
        seed=loaded.recipe.workload.seed,
        filler=name,
        exact=True,
    )
    async with connect(url) as server:
        result = await drive(loaded, server, settings)
    if failures := list(result.failures):
        raise SystemExit(f"{name}: {failures[0]}")
    return result


def sample(result: Result, loaded: Loaded, setting: dict[str, Any]) -> Sample:
    """The figures of one arm's measured runs."""
    fixed = loaded.recipe.agents
    answers = [(fixed[call.call.agent].fixed_tokens or 0, call.answer) for call in result.calls]
    found = [(tokens, answer) for tokens, answer in answers if answer is not None]
    all_tokens = sum(tokens for tokens, _ in found)
    return Sample(
        **setting,
        ttft_ms=1e3 * statistics.fmean(answer.ttft_s for _, answer in found),
        latency_ms=1e3 * statistics.fmean(answer.latency_s for _, answer in found),
        run_ms=1e3 * statistics.fmean(run.seconds for run in result.runs),
        device_share=sum(min(t, a.cached_device or 0) for t, a in found) / all_tokens,
        host_share=sum(min(t, a.cached_host or 0) for t, a in found) / all_tokens,
    )


async def one_setting(
    loaded: Loaded, urls: dict[str, str], arms: list[str], setting: dict[str, Any], given: Any
) -> list[Sample]:
    """All arms in turn, repeat by repeat."""
    samples = []
    for repeat in range(given.repeats):
        turn = arms[repeat % len(arms) :] + arms[: repeat % len(arms)]
        for arm in turn:
            name = f"{arm}-{repeat}-{time.time_ns()}"
            await switch(urls[arm], arm)
            await measure(loaded, urls[arm], f"warm-{name}", given.warm, setting["concurrency"])
            result = await measure(
                loaded, urls[arm], name, given.runs * setting["concurrency"], setting["concurrency"]
            )
            samples.append(sample(result, loaded, {**setting, "repeat": repeat, "arm": arm}))
            console.print(samples[-1])
    return samples


def scaled(loaded: Loaded, output: int) -> Loaded:
    """The recipe with answers of so many tokens."""
    agents = {
        name: spec.model_copy(update={"output_tokens": output})
        for name, spec in loaded.recipe.agents.items()
    }
    return replace(loaded, recipe=loaded.recipe.model_copy(update={"agents": agents}))


async def everything(loaded: Loaded, given: Any, link: Path) -> tuple[list[Sample], dict[str, Any]]:
    """Every setting; servers are started anew for each pool size."""
    fixed = sum(spec.fixed_tokens or 0 for spec in loaded.recipe.agents.values())
    each = max(spec.fixed_tokens or 0 for spec in loaded.recipe.agents.values())
    samples: list[Sample] = []
    facts: dict[str, Any] = {"fixed_tokens": fixed, "dtype": demo_model.best_dtype()}
    for pool in given.pool:
        with servers(loaded, given.arms, int(pool * fixed), fixed + SPARE_TOKENS, link) as urls:
            recompute = await recompute_seconds(next(iter(urls.values())), each)
            token_bytes = 6144 if facts["dtype"] == "float32" else 3072
            console.print(f"recomputing {each} tokens takes {recompute * 1e3:.0f} ms")
            facts[f"recompute_ms at pool {pool}"] = round(recompute * 1e3)
            for load_ratio in given.load:
                link.write_text(str(each * token_bytes / (load_ratio * recompute) / 1e9))
                for output in given.output:
                    for concurrency in given.concurrency:
                        setting = {
                            "pool": pool,
                            "load": load_ratio,
                            "output": output,
                            "concurrency": concurrency,
                        }
                        samples += await one_setting(
                            scaled(loaded, output), urls, given.arms, setting, given
                        )
            link.write_text("")
    return samples, facts


def table(samples: list[Sample]) -> Table:
    """Medians over repeats, a row an arm and setting."""
    shown = Table(
        "pool", "load", "output", "runs", "arm", "TTFT ms", "latency ms", "run ms", "device", "host"
    )
    groups: dict[Any, list[Sample]] = {}
    for one in samples:
        key = (one.pool, one.load, one.output, one.concurrency, one.arm)
        groups.setdefault(key, []).append(one)
    for key, group in groups.items():
        figures = [
            f"{statistics.median(getattr(one, name) for one in group):.{digits}f}"
            for name, digits in (
                ("ttft_ms", 0),
                ("latency_ms", 0),
                ("run_ms", 0),
                ("device_share", 2),
                ("host_share", 2),
            )
        ]
        shown.add_row(*map(str, key), *figures)
    return shown


def main() -> None:
    """Measure, print, and write samples as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipe", default="sequential-10")
    parser.add_argument("--pool", type=float, nargs="+", default=[0.43, 0.86])
    parser.add_argument("--load", type=float, nargs="+", default=[0.1, 0.5, 1.0])
    parser.add_argument("--output", type=int, nargs="+", default=[16])
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1])
    parser.add_argument("--arms", nargs="+", default=[*STOCK, *MODES], choices=[*STOCK, *MODES])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--warm", type=int, default=2, help="warm runs before each measurement")
    parser.add_argument("--runs", type=int, default=2, help="measured runs a repeat")
    parser.add_argument("--out", type=Path, help="file for samples and setup, JSON")
    given = parser.parse_args()
    demo_model.ensure()
    loaded = load(find(given.recipe))
    with tempfile.NamedTemporaryFile("w", suffix=".gbps") as link:
        samples, facts = asyncio.run(everything(loaded, given, Path(link.name)))
    Console().print(table(samples))
    if given.out:
        facts |= {
            "command": " ".join(sys.argv),
            "machine": platform.processor() or platform.machine(),
        }
        facts |= {"cores": os.cpu_count(), "python": platform.python_version()}
        facts["label"] = "CPU engine, emulated link"
        given.out.write_text(
            json.dumps({"setup": facts, "samples": [asdict(one) for one in samples]}, indent=1)
        )


if __name__ == "__main__":
    main()
