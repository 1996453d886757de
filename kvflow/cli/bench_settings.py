"""The settings of a recipe's bench: every combination of what was given with commas."""

from collections.abc import Callable, Sized
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from kvflow.bench.local import LocalRig
from kvflow.bench.regime import DEFAULT_LINK_RATIO, usual_pool_ratio
from kvflow.bench.setting import Setting
from kvflow.bench.shape import Shape, reshape
from kvflow.errors import UsageError
from kvflow.recipe.load import Loaded
from kvflow.recipe.ranges import Range

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Lengths, ratios and counts, as typed; None where nothing was."""

    fixed: int | None
    dynamic: str | None
    output: str | None
    pool_ratio: str | None
    link_ratio: str | None
    concurrency: str | None
    runs: int | None


def settings(loaded: Loaded, sizes: Sizes, *, quick: bool, rig: LocalRig | None) -> list[Setting]:
    """A setting for each combination.

    Args:
        loaded: the recipe.
        sizes: what was given.
        quick: whether a turn has only one run for each run at once.
        rig: of the CPU engine, where pool and link have to be set; None elsewhere.

    Raises:
        UsageError: something that should be a number is none.
    """
    pools = _numbers("--pool-ratio", sizes.pool_ratio, float)
    links = _numbers("--link-ratio", sizes.link_ratio, float)
    outputs = _numbers("--output", sizes.output, int)
    lanes = _numbers("--concurrency", sizes.concurrency, int)
    choices: dict[str, Sized] = {
        "pool": pools, "link": links, "output": outputs, "at once": lanes
    }  # fmt: skip
    varied = [name for name, values in choices.items() if len(values) > 1]
    found = []
    for pool, link, output, at_once in product(pools, links, outputs, lanes):
        shape = Shape(fixed=sizes.fixed, dynamic=_range(sizes.dynamic), output=output)
        shaped = reshape(loaded, shape)
        given = {"pool": pool, "link": link, "output": output, "at once": at_once}
        name = ", ".join(f"{what} {given[what]:g}" for what in varied)
        concurrency = at_once or shaped.recipe.workload.concurrency
        if rig is not None:
            pool = pool or usual_pool_ratio(shaped, rig.fixed(shaped))
            link = link or DEFAULT_LINK_RATIO
        found.append(
            Setting(
                name=name or shaped.recipe.name,
                served=shaped,
                driven=shaped,
                pool_ratio=pool,
                link_ratio=link,
                runs=sizes.runs or (concurrency if quick else shaped.recipe.workload.runs),
                concurrency=concurrency,
            )
        )
    return found


def _numbers(flag: str, text: str | None, kind: Callable[[str], Number]) -> list[Number | None]:
    """The numbers between commas; one None if nothing was given."""
    if text is None:
        return [None]
    try:
        found = [kind(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or any(not 0 < number < float("inf") for number in found):
        raise UsageError(
            f"{flag} {text!r} is no list of positive numbers",
            "several have commas between them",
            f"{flag} 1,2" if kind is int else f"{flag} 0.5,1",
        )
    return list(dict.fromkeys(found))


def _range(text: str | None) -> Range | None:
    if text is None:
        return None
    try:
        found = Range.read(text)
    except ValueError as error:
        raise UsageError(f"--dynamic {text}", str(error)) from None
    if found.low < 1:
        raise UsageError(f"--dynamic {text}", "a call needs at least one new token")
    return found
