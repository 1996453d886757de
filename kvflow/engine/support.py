"""Which of SGLang's settings kvflow works with: the table of docs/engine.md, in code."""

from typing import Any

from kvflow.errors import UsageError

# (attribute of ServerArgs, what refuses it, the flag a person typed)
_REFUSED: tuple[tuple[str, object, str], ...] = (
    ("enable_lmcache", True, "--enable-lmcache"),
    ("enable_flexkv", True, "--enable-flexkv"),
    ("enable_unified_cache_external_linker", True, "--enable-unified-cache-external-linker"),
    ("enable_session_radix_cache", True, "--enable-session-radix-cache"),
    ("hicache_host_memory_mode", "buffer_only", "--hicache-host-memory-mode buffer_only"),
    # Calls queue elsewhere there, where no plugin sees them come.
    ("disaggregation_mode", "prefill", "--disaggregation-mode prefill"),
    ("disaggregation_mode", "decode", "--disaggregation-mode decode"),
)


def refuse(context: Any) -> None:
    """Stop the start for settings that kvflow cannot work with.

    Args:
        context: SGLang's TreeCacheBuildContext.

    Raises:
        UsageError: names the flag.
    """
    args = context.server_args
    for attribute, value, flag in _REFUSED:
        if getattr(args, attribute, None) == value:
            _stop(flag, "what stays in the cache is decided elsewhere there")
    if context.disable_radix_cache:
        _stop("--disable-radix-cache", "without a radix cache there is nothing to decide")
    if context.is_hybrid_swa and context.full_tokens_per_layer == 0:
        _stop("this model", "a model of sliding-window layers alone keeps no prefix")
    if args._radix_eviction_policy_explicitly_set and args.radix_eviction_policy != "lru":
        _stop(
            f"--radix-eviction-policy {args.radix_eviction_policy}",
            "kvflow orders by steps, and by last use where it knows none",
        )
    if args.tokenizer_worker_num > 1:
        _stop("--tokenizer-worker-num", "its HTTP workers load no plugins")


def limits(context: Any) -> list[str]:
    """Why kvflow decides the eviction order only with these settings; empty if it does all."""
    args = context.server_args
    return [
        text
        for holds, text in (
            (not context.enable_hierarchical_cache, "no host tier"),
            (args.pp_size > 1, "pipeline parallel"),
            (args.speculative_algorithm is not None, "speculative decoding"),
            (context.is_hybrid_swa or context.is_hybrid_ssm, "hybrid model"),
            (args.hicache_storage_backend is not None, "storage backend"),
            (args.hicache_write_policy == "write_back", "write policy write_back"),
        )
        if holds
    ]


def _stop(flag: str, why: str) -> None:
    raise UsageError(
        f"kvflow does not work with {flag}", why, "leave it out, or serve without kvflow"
    )
