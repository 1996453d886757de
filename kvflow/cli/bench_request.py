"""What a bench was asked for, made into settings, arms, effort and a rig."""

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from kvflow.bench.arms import Arm, choose
from kvflow.bench.live import LiveRig
from kvflow.bench.local import LocalRig
from kvflow.bench.measure import Access
from kvflow.bench.plan import Effort
from kvflow.bench.setting import Suite
from kvflow.bench.suites import SCALES, SUITES
from kvflow.cli import bench_settings
from kvflow.cli.run import read_api_key
from kvflow.engine import launch
from kvflow.engine.launch import checks
from kvflow.errors import UsageError
from kvflow.recipe.load import find, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvflow.engine.launch import Device

_REPEATS = 5
_QUICK_S = 90.0  # an arm, for a setting's repeats; on a CPU servers are up before
_DEFAULT_MODE = "prefetch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The command line, as typed; None where nothing was."""

    target: str
    quick: bool
    arms: str | None
    repeats: int | None
    pool_ratio: str | None
    link_ratio: str | None
    fixed: int | None
    dynamic: str | None
    output: str | None
    runs: int | None
    concurrency: str | None
    scale: Literal["cpu", "full"] | None
    only: str | None
    device: Literal["auto", "cpu", "cuda"]
    model: str | None
    url: str | None
    timeout_s: float
    sglang_flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done."""

    suite: Suite
    arms: list[Arm]
    effort: Effort
    rig: LocalRig | LiveRig


def order(request: Request) -> Order:
    """Everything that the command line stands for, checked before anything is started.

    Raises:
        KvflowError: it asks for what makes no sense or is not here.
    """
    device = launch.choose(request.device, os.environ)
    rig = _rig(request, device)
    suite = _part(_suite(request, device, rig), request.only)
    arms = choose(request.arms) if request.arms is not None else _usual_arms(request, suite)
    if isinstance(rig, LiveRig):
        rig.check(suite.settings, arms)
    else:
        rig.check(suite.settings)
    return Order(suite, arms, _effort(request, arms), rig)


def _rig(request: Request, device: "Device") -> LocalRig | LiveRig:
    if request.url is None:
        checks.sglang_version()
        access = Access(timeout_s=request.timeout_s)
        return LocalRig(device, request.model, access, request.sglang_flags)
    if request.sglang_flags:
        raise UsageError(
            f"--url goes without flags for SGLang: {' '.join(request.sglang_flags)}",
            "they are given when a server is started",
        )
    return LiveRig(request.url, Access(read_api_key(None), request.timeout_s))


def _effort(request: Request, arms: "Sequence[Arm]") -> Effort:
    if request.repeats is not None:
        return Effort(request.repeats)
    return Effort(_REPEATS, budget_s=_QUICK_S * len(arms) if request.quick else None)


def _usual_arms(request: Request, suite: Suite) -> list[Arm]:
    mode = suite.settings[0].served.recipe.policy.mode
    ours = _DEFAULT_MODE if mode == "off" else mode
    if request.url:
        return choose(f"off,{ours}")
    return choose(f"hicache,{ours}" if request.quick else f"lru,hicache,limit,{ours}")


def _suite(request: Request, device: "Device", rig: LocalRig | LiveRig) -> Suite:
    if request.target in SUITES:
        return _named_suite(request, device)
    if request.scale is not None:
        raise UsageError(
            f"--scale {request.scale} is for suites",
            f"{request.target} is a recipe",
            "a recipe takes --fixed, --dynamic, --output",
        )
    settings = bench_settings.settings(
        load(find(request.target)),
        bench_settings.Sizes(
            fixed=request.fixed,
            dynamic=request.dynamic,
            output=request.output,
            pool_ratio=request.pool_ratio,
            link_ratio=request.link_ratio,
            concurrency=request.concurrency,
            runs=request.runs,
        ),
        quick=request.quick,
        rig=rig if isinstance(rig, LocalRig) and device == "cpu" else None,
    )
    recipe = settings[0].served.recipe
    return Suite(recipe.name, recipe.description, settings)


def _part(suite: Suite, only: str | None) -> Suite:
    """The settings that were asked for; all if none were."""
    chosen = [one for one in suite.settings if only is None or only in one.name]
    if not chosen:
        names = "\n".join(one.name for one in suite.settings)
        raise UsageError(
            f"--only {only} is in the name of no setting",
            f"{suite.name} has these:\n{names}",
        )
    return replace(suite, settings=chosen)


def _named_suite(request: Request, device: "Device") -> Suite:
    sizes = {
        "--fixed": request.fixed,
        "--dynamic": request.dynamic,
        "--output": request.output,
        "--pool-ratio": request.pool_ratio,
        "--link-ratio": request.link_ratio,
        "--runs": request.runs,
        "--concurrency": request.concurrency,
        "--url": request.url,
    }
    for flag, value in sizes.items():
        if value is not None:
            raise UsageError(
                f"{flag} {value} does not go with the suite {request.target}",
                "a suite has sizes and servers of its own",
                "bench a recipe instead, such as sequential-10; or leave it out",
            )
    scale = request.scale or ("cpu" if device == "cpu" else "full")
    return SUITES[request.target](SCALES[scale])
