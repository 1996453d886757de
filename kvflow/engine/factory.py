"""Building the cache when SGLang asks for `--radix-cache-backend kvflow`.

SGLang only logs what fails in a plugin, so nothing is left to luck here: names and settings are
checked before the cache is built, hooks after, and a scheduler that is not whole does not start.
"""

import logging
from typing import Any

from sglang.srt.mem_cache.registry import create_unified_radix_cache
from sglang.srt.mem_cache.unified_cache.components import ComponentType

from kvflow.engine import compat, hooks, settings, support
from kvflow.engine.cache import KvflowRadixCache
from kvflow.engine.component import KvflowFullComponent
from kvflow.engine.plugin import BACKEND
from kvflow.engine.tree import KvflowTreeCore

_log = logging.getLogger(__name__)


def build_cache(context: Any) -> KvflowRadixCache:
    """SGLang's factory for the backend.

    Args:
        context: SGLang's TreeCacheBuildContext.

    Raises:
        IncompatibleSGLang: a private name that kvflow uses is not there.
        UsageError: settings that contradict each other, or flags that kvflow cannot work with.
    """
    compat.check()
    support.refuse(context)
    told = settings.from_environment()
    params = context.params
    params.eviction_policy, params.eviction_policy_config = "lru", None
    params.tree_core_backend = BACKEND
    params.component_registry_override = {
        **(params.component_registry_override or {}),
        ComponentType.FULL: KvflowFullComponent,
    }
    KvflowRadixCache.settings = told
    cache = create_unified_radix_cache(context, cache_class=KvflowRadixCache)
    assert isinstance(cache, KvflowRadixCache)
    cache.limits = tuple(support.limits(context))
    if told.recipe is not None:
        # Prefixes follow when the HTTP process has rendered them with its chat template.
        cache.calls.serve(told.recipe, {})
    hooks.install()
    only = f"; eviction order only: {', '.join(cache.limits)}" if cache.limits else ""
    _log.info("kvflow: mode %s%s", cache.mode, only)
    return cache


def build_tree(params: Any, components: Any) -> KvflowTreeCore:
    """SGLang's factory for the tree core."""
    told = KvflowRadixCache.settings
    return KvflowTreeCore(
        params, components, mode=told.mode, untagged_steps=told.policy.untagged_steps
    )
