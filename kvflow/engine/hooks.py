"""The three places of SGLang's scheduler that kvflow hooks, all after the original.

Installed by the factory, so only in a scheduler that was asked for kvflow.
"""

from typing import Any

from sglang.srt.managers.scheduler import Scheduler
from sglang.srt.plugins.hook_registry import HookRegistry, HookType
from sglang.utils import TypeBasedDispatcher

from kvflow.engine import admission, control
from kvflow.engine.compat import IncompatibleSGLang
from kvflow.engine.ipc import KvflowReq

_SCHEDULER = "sglang.srt.managers.scheduler.Scheduler."


def install() -> None:
    """Hook the scheduler class. Once is enough, however many caches are built.

    Raises:
        IncompatibleSGLang: a hook did not take, for example because another plugin had hooked the
            same place before.
    """
    hooks = {
        "_add_request_to_queue": _after_queueing,
        "init_request_dispatcher": _add_handler,
        "get_prefill_adder_class": _defer,
    }
    for name, hook in hooks.items():
        if not getattr(getattr(Scheduler, name), "__kvflow__", False):
            _hook(name, hook)


def _hook(name: str, hook: Any) -> None:
    HookRegistry.register(_SCHEDULER + name, hook, HookType.AFTER)
    original = getattr(Scheduler, name)
    HookRegistry.apply_hooks()
    hooked = getattr(Scheduler, name)
    if hooked is original:
        raise IncompatibleSGLang(f"Scheduler.{name} could not be hooked")
    hooked.__kvflow__ = True


def _after_queueing(_: Any, scheduler: Any, req: Any, *args: Any, **kwargs: Any) -> None:
    """A call counts from its arrival: a match comes only after the running batch."""
    # SGLang may have turned it away at the door, and has said so to the cache already.
    if scheduler.waiting_queue and scheduler.waiting_queue[-1] is req:
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
