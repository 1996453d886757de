"""The places of SGLang's scheduler that kvflow hooks.

Installed by the factory, so only in a scheduler that was asked for kvflow.
"""

from typing import Any

from sglang.srt.managers.scheduler import Scheduler
from sglang.srt.managers.scheduler_components.weight_updater import SchedulerWeightUpdaterManager
from sglang.srt.managers.utils import is_health_check_generate_req
from sglang.srt.plugins.hook_registry import HookRegistry, HookType
from sglang.utils import TypeBasedDispatcher

from kvflow.engine import admission, control
from kvflow.engine.compat import IncompatibleSGLang
from kvflow.engine.ipc import KvflowReq


def install() -> None:
    """Hook the scheduler's classes. Once is enough, however many caches are built.

    Raises:
        IncompatibleSGLang: a hook did not take, for example because another plugin had hooked the
            same place before.
    """
    hooks = (
        (Scheduler, "_add_request_to_queue", HookType.AFTER, _after_queueing),
        (Scheduler, "init_request_dispatcher", HookType.AFTER, _add_handler),
        (Scheduler, "get_prefill_adder_class", HookType.AFTER, _defer),
        (Scheduler, "flush_cache", HookType.BEFORE, _bring_prefetches_to_their_end),
        (Scheduler, "pause_generation", HookType.BEFORE, _bring_prefetches_to_their_end),
        (
            SchedulerWeightUpdaterManager,
            "release_memory_occupation",
            HookType.BEFORE,
            _bring_prefetches_to_their_end_for,
        ),
    )
    for owner, name, kind, hook in hooks:
        if not getattr(getattr(owner, name), "__kvflow__", False):
            _hook(owner, name, kind, hook)


def _hook(owner: type, name: str, kind: HookType, hook: Any) -> None:
    HookRegistry.register(f"{owner.__module__}.{owner.__name__}.{name}", hook, kind)
    original = getattr(owner, name)
    HookRegistry.apply_hooks()
    hooked = getattr(owner, name)
    if hooked is original:
        raise IncompatibleSGLang(f"{owner.__name__}.{name} could not be hooked")
    hooked.__kvflow__ = True


def _after_queueing(_: Any, scheduler: Any, req: Any, *args: Any, **kwargs: Any) -> None:
    """A call counts from its arrival: a match comes only after the running batch."""
    # SGLang may have turned it away at the door, and has said so to the cache already.
    queued = scheduler.waiting_queue and scheduler.waiting_queue[-1] is req
    if queued and not is_health_check_generate_req(req):  # which is nobody's traffic
        scheduler.tree_cache.call_arrived(req)


def _defer(adder_class: Any, scheduler: Any) -> Any:
    """The class that admits calls to a prefill batch, made to pass over what is arriving."""
    return admission.status_aware(adder_class)


def _add_handler(_: Any, scheduler: Any) -> None:
    """Every rank hears control messages in the same place of the same stream of messages."""
    scheduler.tree_cache.scheduler = scheduler
    scheduler._request_dispatcher += TypeBasedDispatcher(
        [(KvflowReq, lambda request: control.handle(scheduler, request))]
    )


def _bring_prefetches_to_their_end(scheduler: Any, *args: Any, **kwargs: Any) -> None:
    """What has to find the server idle would be refused while a copy is in flight.

    SGLang then serves on from old KV after new weights, or fails on an assertion; and a paused
    scheduler takes note of no copy, so that it would never be idle.
    """
    scheduler.tree_cache.finish_prefetches()


def _bring_prefetches_to_their_end_for(updater: Any, *args: Any, **kwargs: Any) -> None:
    if updater.scheduler is not None:
        _bring_prefetches_to_their_end(updater.scheduler)
