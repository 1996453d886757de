"""What a bench was asked for, made into settings, arms, effort and a rig."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kvflow.bench.arms import Arm, choose
from kvflow.bench.live import LiveRig
from kvflow.bench.local import LocalRig
from kvflow.bench.measure import Access
from kvflow.bench.plan import Effort
from kvflow.bench.regime import DEFAULT_LINK_RATIO, usual_pool_ratio
from kvflow.bench.setting import Setting, Suite
from kvflow.bench.shape import Shape, reshape
from kvflow.bench.suites import SCALES, SUITES
from kvflow.engine import launch
from kvflow.engine.launch import checks
from kvflow.errors import UsageError
from kvflow.recipe.load import find, load
from kvflow.recipe.ranges import Range

if TYPE_CHECKING:
    from kvflow.engine.launch import Device

_REPEATS = 5
_QUICK_S = 180.0  # for measuring a setting; starting servers comes on top, 5 minutes in all
_DEFAULT_MODE = "prefetch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The command line, as typed; None where nothing was."""

    target: str
    quick: bool
    arms: str | None
    repeats: int | None
    pool_ratio: float | None
    link_ratio: float | None
    fixed: int | None
    dynamic: str | None
    output: int | None
    runs: int | None
    concurrency: int | None
    scale: Literal["cpu", "full"] | None
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
    suite = _suite(request, device, rig)
    arms = choose(request.arms) if request.arms is not None else _usual_arms(request, suite)
    if isinstance(rig, LiveRig):
        rig.check(suite.settings, arms)
    else:
        rig.check(suite.settings)
    return Order(suite, arms, _effort(request), rig)


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
    key = os.environ.get("KVFLOW_API_KEY") or None
    return LiveRig(request.url, Access(key, request.timeout_s))


def _effort(request: Request) -> Effort:
    if request.repeats is not None:
        return Effort(request.repeats)
    return Effort(_REPEATS, budget_s=_QUICK_S if request.quick else None)


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
    loaded = reshape(load(find(request.target)), _shape(request))
    workload = loaded.recipe.workload
    concurrency = request.concurrency or workload.concurrency
    pool, link = request.pool_ratio, request.link_ratio
    if isinstance(rig, LocalRig) and device == "cpu":
        pool = pool or usual_pool_ratio(loaded, rig.fixed(loaded))
        link = link or DEFAULT_LINK_RATIO
    setting = Setting(
        name=loaded.recipe.name,
        served=loaded,
        driven=loaded,
        pool_ratio=pool,
        link_ratio=link,
        runs=request.runs or (concurrency if request.quick else workload.runs),
        concurrency=concurrency,
    )
    return Suite(loaded.recipe.name, loaded.recipe.description, [setting])


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


def _shape(request: Request) -> Shape:
    try:
        dynamic = None if request.dynamic is None else Range.read(request.dynamic)
    except ValueError as error:
        raise UsageError(f"--dynamic {request.dynamic}", str(error)) from None
    if dynamic is not None and dynamic.low < 1:
        raise UsageError(f"--dynamic {request.dynamic}", "a call needs at least one new token")
    return Shape(fixed=request.fixed, dynamic=dynamic, output=request.output)
