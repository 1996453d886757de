"""The pressure that a workload is put under, set by ratios and not by sizes.

What kvflow buys depends on two ratios: how much of the fixed prefixes the device pool holds, and
how long loading a prefix takes compared with computing it anew. The machines of the KVFlow paper
come to pools of 0.86 and 0.43 (one workflow) and of 0.68 and 0.34 (many at once). Sizes only have
to fit the machine.
"""

import random
from math import ceil
from statistics import median
from typing import NamedTuple

from kvflow.bench.model import FixedSet
from kvflow.bench.setting import Setting
from kvflow.client.exchange import IdsPrompt
from kvflow.client.server import Server
from kvflow.errors import KvflowError, UsageError
from kvflow.recipe.load import Loaded
from kvflow.workload import plan_run

DEFAULT_POOL_RATIO = 0.43
DEFAULT_LINK_RATIO = 0.5
_SPARE_TOKENS = 2048
_PLAIN_TOKENS = 4096  # what a plain chat may leave behind between two rounds of the workflow
_TAIL_TOKENS = 32
_ROUNDS = 24  # of the workflow, in which is seen how seldom an agent speaks
_TRIES = 5


class Pools(NamedTuple):
    """Device pools in tokens.

    Attributes:
        pressed: of every arm but `limit`; None leaves it to the engine.
        limit: of the arm `limit`: everything stays resident.
    """

    pressed: int | None
    limit: int


def pools(setting: Setting, fixed: FixedSet) -> Pools:
    """The pools for a setting.

    Raises:
        UsageError: not even one call fits into the pressed pool.
    """
    limit = fixed.unique + _tails(setting) + _SPARE_TOKENS + _PLAIN_TOKENS * setting.plain_lanes
    if setting.pool_ratio is None:
        return Pools(None, limit)
    pressed = round(setting.pool_ratio * fixed.unique)
    largest = fixed.longest + _largest_tail(setting.driven)
    if pressed <= largest:
        least = ceil((largest + 1) / fixed.unique * 100) / 100
        raise UsageError(
            f"--pool-ratio {setting.pool_ratio:g} leaves {pressed} tokens for the device pool",
            f"the longest call of {setting.name} needs {largest}",
            f"take at least {least:.2f}, or shorter prompts: --fixed, --dynamic, --output",
        )
    return Pools(pressed, limit)


def usual_pool_ratio(loaded: Loaded, fixed: FixedSet) -> float:
    """The ratio that is taken where nobody asks for one: 0.43, or what one call needs at least."""
    least = 1.05 * (fixed.longest + _largest_tail(loaded)) / fixed.unique
    return max(DEFAULT_POOL_RATIO, ceil(least * 100) / 100)


def _tails(setting: Setting) -> int:
    """Tokens that are left behind fixed prefixes until an agent speaks again that seldom does.

    The least recently used goes first where there is no host tier, so with less room its prefix
    would go before what nobody will ask for again.
    """
    seed, at_once = setting.driven.recipe.workload.seed, setting.concurrency
    tails, gap = [0], 1
    spoke: dict[str, int] = {}
    for number in range(_ROUNDS):
        runs = range(number * at_once, (number + 1) * at_once)
        calls = [call for run in runs for call in plan_run(setting.driven, run, seed)]
        tails.append(sum(call.dynamic_tokens + call.output_tokens for call in calls))
        for agent in {call.agent for call in calls}:
            gap = max(gap, number - spoke.get(agent, -1))
            spoke[agent] = number
    return (gap + 1) * max(tails)


def _largest_tail(loaded: Loaded) -> int:
    longest = max(spec.output_tokens for spec in loaded.recipe.agents.values())
    return loaded.recipe.workload.dynamic_tokens.high + longest


async def recompute_seconds(server: Server, tokens: int, seed: int) -> float:
    """What computing a prefix costs: a miss's time to first token less a hit's.

    Args:
        server: idle, without a limit on its link.
        tokens: of the prefix.
        seed: other prompts for another one.

    Raises:
        KvflowError: a call fails, or a hit takes as long as a miss.
    """
    chance = random.Random(seed)
    misses: list[float] = []
    hits: list[float] = []
    vocabulary = await server.vocabulary()
    for number in range(_TRIES):
        prefix = chance.choices(vocabulary, k=tokens)
        for what, times in (("miss", misses), ("hit", hits)):
            prompt = IdsPrompt((*prefix, *chance.choices(vocabulary, k=_TAIL_TOKENS)))
            name = f"measuring what recomputing costs ({what} {number + 1})"
            answer = await server.ask(prompt, max_tokens=1, what=name, exact=True)
            times.append(answer.ttft_s)
    seconds = median(misses) - median(hits)
    if seconds <= 0:
        raise KvflowError(
            f"recomputing {tokens} tokens costs nothing that could be measured",
            f"misses took {median(misses) * 1e3:.1f} ms, hits {median(hits) * 1e3:.1f} ms",
            "longer prompts: --fixed 1024",
        )
    return seconds


def link_gbps(ratio: float, recompute_s: float, prefix_bytes: int) -> float:
    """The speed of the link, in GB/s, at which loading takes `ratio` of recomputing."""
    return prefix_bytes / (ratio * recompute_s) / 1e9
