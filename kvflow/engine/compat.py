"""The names of SGLang, beyond its public plugin API, that kvflow overrides, hooks or calls.

Checked before the cache is built, since an override of a method that is gone would go unnoticed:
it would just never be called. A name that is gone or takes other arguments stops the start
with the version and the name, because a half-working cache policy is worse than none.
KVFLOW_COMPAT=warn logs instead, for trying a newer SGLang.
"""

import inspect
import logging
import os
import pkgutil
from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import NamedTuple

from kvflow.errors import KvflowError

SUPPORTED = "0.5.23"
"""The SGLang that this version of kvflow is made for (`engine` extra in pyproject.toml)."""

_log = logging.getLogger(__name__)
_MEM = "sglang.srt.mem_cache."
_CORE = _MEM + "unified_cache.unified_tree_core:UnifiedTreeCore."
_CACHE = _MEM + "unified_radix_cache:UnifiedRadixCache."
_FULL = _MEM + "unified_cache.components.full:FullComponent."
_SCHEDULER = "sglang.srt.managers.scheduler:Scheduler."
_POLICY = "sglang.srt.managers.schedule_policy:"


class IncompatibleSGLang(KvflowError):
    """This SGLang is not one kvflow can work with."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"kvflow {what}",
            f"SGLang {version('sglang')} is installed, and kvflow stands on {SUPPORTED}",
            f"pip install sglang=={SUPPORTED}",
        )


class Name(NamedTuple):
    """One name, and the parameters by which kvflow calls or overrides it."""

    path: str
    parameters: tuple[str, ...] = ()


NAMES = (
    # Overridden or called on the tree core (tree.py)
    Name(_CORE + "reset"),
    Name(_CORE + "_split_node", ("key", "child", "split_len")),
    Name(_CORE + "_add_new_node", ("parent", "key", "value")),
    Name(_CORE + "_unevict_node_on_insert", ("node",)),
    Name(_CORE + "_remove_leaf_from_parent", ("node",)),
    Name(_CORE + "_demote", ("node",)),
    Name(_CORE + "evict_device_leaf", ("node_id", "is_write_back")),
    Name(_CORE + "_evict_host_leaf", ("node", "tracker", "device_frees", "host_frees")),
    Name(_CORE + "_inc_hit_count_and_check", ("node",)),
    Name(_CORE + "commit_load_back", ("node_id", "device_indices", "kv_xfer", "comp_xfers")),
    Name(_CORE + "finish_load_back", ("anchor_node_id",)),
    # Overridden to keep books (observed_tree.py)
    Name(_CORE + "_match_post_processor", ("params", "value", "best_match_node")),
    Name(_CORE + "_touch_node", ("node",)),
    Name(_CORE + "_update_evictable_leaf_sets", ("node",)),
    Name(_CORE + "_evict_component_and_detach_lru", ("node",)),
    Name(_CORE + "inc_lock_ref", ("node_id",)),
    Name(_CORE + "dec_lock_ref", ("node_id",)),
    Name(_CORE + "inc_full_pin", ("node_id",)),
    Name(_CORE + "dec_full_pin", ("node_id",)),
    Name(_CORE + "commit_backup", ("node_id", "host_indices", "comp_xfers")),
    Name(_CORE + "mark_write_through_pending", ("node_ids", "ack_id")),
    Name(_CORE + "finish_write_through", ("node_ids", "ack_id")),
    # The walk (component.py)
    Name(_FULL + "_evict_device_start", ("request_cnt",)),
    Name(
        _FULL + "_evict_device_next_node",
        ("tracker", "device_frees", "host_frees", "cache_actions"),
    ),
    Name(_FULL + "_evict_device_end"),
    Name(
        _FULL + "drive_host_eviction",
        ("num_tokens", "tracker", "device_frees", "host_frees", "cache_actions"),
    ),
    # The cache (cache.py)
    Name(_CACHE + "reset"),
    Name(_CACHE + "match_prefix", ("params",)),
    Name(_CACHE + "insert", ("params",)),
    Name(_CACHE + "checkpoint_into_tree", ("req", "up_to")),
    Name(_CACHE + "on_release", ("req", "checkpointed")),
    Name(_CACHE + "check_hicache_events"),
    Name(_CACHE + "ready_to_load_host_cache"),
    Name(_CACHE + "lock", ("node_id", "skip_lock_components")),
    Name(_CACHE + "load_back", ("node_id",)),
    # The cache's books (observed_cache.py)
    Name(_CACHE + "loading_check", ("finish_count",)),
    Name(_CACHE + "_log_write_ack_metrics", ("ack",)),
    Name("sglang.srt.managers.schedule_batch:Req.materialized_host_hit_len"),
    Name(_MEM + "base_prefix_cache:BasePrefixCache.finish", ("handle", "outcome")),
    Name(_MEM + "base_prefix_cache:CacheRequestOutcome.SUCCESS"),
    Name(_CACHE + "claim_kv_row", ("req",)),
    Name("sglang.srt.managers.schedule_batch:FINISH_ABORT"),
    Name("sglang.srt.session.streaming_session:is_virtual_node"),
    # Building it (factory.py)
    Name(_MEM + "registry:create_unified_radix_cache", ("ctx", "cache_class")),
    Name(_MEM + "unified_cache.tree_core_registry:register_tree_core_backend"),
    # The scheduler (hooks.py, admission.py)
    Name(_SCHEDULER + "_add_request_to_queue", ("req",)),
    Name(_SCHEDULER + "init_request_dispatcher"),
    Name(_SCHEDULER + "get_prefill_adder_class"),
    Name(_SCHEDULER + "flush_cache"),
    Name(_SCHEDULER + "pause_generation"),
    Name(
        "sglang.srt.managers.scheduler_components.weight_updater:"
        "SchedulerWeightUpdaterManager.release_memory_occupation"
    ),
    Name("sglang.srt.managers.utils:is_health_check_generate_req"),
    Name(_POLICY + "PrefillAdder.add_one_req", ("req",)),
    Name(_POLICY + "AddReqResult.CONTINUE"),
    Name("sglang.srt.managers.tokenizer_control_mixin:_COMMUNICATOR_SPECS"),
    Name("sglang.srt.managers.io_struct:hook_custom_types"),
    Name("sglang.srt.managers.scheduler_components.output_sender:SenderWrapper", ("socket",)),
)

FIELDS = {
    _MEM + "cache_init_params:CacheInitParams": (
        "page_size",
        "eviction_policy",
        "eviction_policy_config",
        "tree_core_backend",
        "component_registry_override",
        "tree_components",
    ),
    _MEM + "base_prefix_cache:InsertParams": ("key", "value", "prev_prefix_len", "inserted_len"),
    _MEM + "registry:TreeCacheBuildContext": (
        "server_args",
        "params",
        "is_hybrid_swa",
        "is_hybrid_ssm",
        "enable_hierarchical_cache",
        "disable_radix_cache",
        "full_tokens_per_layer",
    ),
    # What snapshot.py names, and flags that could not be refused if they were gone (support.py).
    "sglang.srt.server_args:ServerArgs": (
        "model_path",
        "enable_lmcache",
        "enable_flexkv",
        "enable_unified_cache_external_linker",
        "enable_session_radix_cache",
        "hicache_host_memory_mode",
        "radix_eviction_policy",
        "_radix_eviction_policy_explicitly_set",
        "tokenizer_worker_num",
        "pp_size",
        "speculative_algorithm",
        "disaggregation_mode",
        "hicache_storage_backend",
    ),
}


def missing(names: tuple[Name, ...] = NAMES) -> list[str]:
    """What this SGLang lacks, in words; nothing if it fits."""
    found = [text for name in names if (text := _lack(name))]
    for path, fields in FIELDS.items():
        known = _fields(_resolve(path))
        found += [f"{path} has no field {field}" for field in fields if field not in known]
    return found


def check() -> None:
    """Stop the start if this SGLang does not fit.

    Raises:
        IncompatibleSGLang: unless KVFLOW_COMPAT=warn, which logs it.
    """
    lacks = missing()
    if not lacks:
        return
    error = IncompatibleSGLang("does not fit: " + "; ".join(lacks))
    if not tries_all_the_same():
        raise error
    _log.warning("%s", error)


def tries_all_the_same(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether an SGLang that kvflow is not made for is only warned of."""
    return environ.get("KVFLOW_COMPAT") == "warn"


def _resolve(path: str) -> object:
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return None


def _fields(found: object) -> Collection[str]:
    """Of a dataclass, or of a msgspec struct."""
    names: Collection[str] = getattr(found, "__dataclass_fields__", ())
    return names or getattr(found, "__struct_fields__", ())


def _lack(name: Name) -> str:
    found = _resolve(name.path)
    if found is None:
        return f"{name.path} is missing"
    if not name.parameters:
        return ""
    known = inspect.signature(found).parameters  # type: ignore[arg-type]
    lost = [parameter for parameter in name.parameters if parameter not in known]
    return f"{name.path} no longer takes {', '.join(lost)}" if lost else ""
