from typing import Any

import pytest
import support.engine  # noqa: F401 - before SGLang
from sglang.srt.server_args import ServerArgs
from support.real_cache import build_context

from kvflow.engine import support as settings_support
from kvflow.errors import UsageError

pytestmark = pytest.mark.engine


def with_args(**args: Any) -> Any:
    """What the factory is handed when SGLang was started with these arguments."""
    context = build_context()
    context.server_args = ServerArgs(model_path="dummy", **args)
    return context


def test_plain_settings_are_not_refused():
    settings_support.refuse(build_context())


@pytest.mark.parametrize(
    ("args", "flag"),
    [
        ({"enable_lmcache": True}, "--enable-lmcache"),
        ({"enable_flexkv": True}, "--enable-flexkv"),
        (
            {"enable_unified_cache_external_linker": True},
            "--enable-unified-cache-external-linker",
        ),
        ({"enable_session_radix_cache": True}, "--enable-session-radix-cache"),
        ({"hicache_host_memory_mode": "buffer_only"}, "--hicache-host-memory-mode buffer_only"),
        (
            {"_radix_eviction_policy_explicitly_set": True, "radix_eviction_policy": "lfu"},
            "--radix-eviction-policy lfu",
        ),
        ({"tokenizer_worker_num": 2}, "--tokenizer-worker-num"),
        ({"disaggregation_mode": "prefill"}, "--disaggregation-mode prefill"),
        ({"disaggregation_mode": "decode"}, "--disaggregation-mode decode"),
    ],
)
def test_flag_that_kvflow_cannot_work_with_is_refused_by_its_name(args, flag):
    with pytest.raises(UsageError) as caught:
        settings_support.refuse(with_args(**args))
    assert caught.value.what == f"kvflow does not work with {flag}"
    assert caught.value.why
    assert caught.value.hint


def test_disabled_radix_cache_is_refused():
    context = build_context()
    context.disable_radix_cache = True
    with pytest.raises(UsageError, match="--disable-radix-cache"):
        settings_support.refuse(context)


def test_model_of_sliding_window_layers_alone_is_refused():
    context = build_context()
    context.is_hybrid_swa, context.full_tokens_per_layer = True, 0
    with pytest.raises(UsageError, match="this model"):
        settings_support.refuse(context)


def test_model_with_some_sliding_window_layers_is_not_refused():
    context = build_context()
    context.is_hybrid_swa, context.full_tokens_per_layer = True, 1000
    settings_support.refuse(context)


@pytest.mark.parametrize("policy", ["lru", "lfu"])
def test_eviction_policy_that_nobody_asked_for_is_not_refused(policy):
    settings_support.refuse(with_args(radix_eviction_policy=policy))


def test_lru_that_was_asked_for_is_not_refused():
    settings_support.refuse(
        with_args(radix_eviction_policy="lru", _radix_eviction_policy_explicitly_set=True)
    )


def test_limits_of_plain_settings_are_none():
    assert settings_support.limits(build_context()) == []


@pytest.mark.parametrize(
    ("args", "limit"),
    [
        ({"pp_size": 2}, "pipeline parallel"),
        ({"speculative_algorithm": "EAGLE"}, "speculative decoding"),
        ({"hicache_storage_backend": "file"}, "storage backend"),
        ({"hicache_write_policy": "write_back"}, "write policy write_back"),
    ],
)
def test_limits_name_the_setting_that_leaves_the_eviction_order_alone(args, limit):
    assert settings_support.limits(with_args(**args)) == [limit]


def test_limits_name_a_missing_host_tier_and_a_hybrid_model():
    context = build_context(host_ratio=0)
    context.is_hybrid_ssm = True
    assert settings_support.limits(context) == ["no host tier", "hybrid model"]
