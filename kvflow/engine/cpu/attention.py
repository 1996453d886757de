"""Prefill attention for the CPU that computes the new rows only.

SGLang's torch_native backend computes query rows for the cached prefix too and throws them away,
so that on a CPU a cache hit still pays for attention over the whole prompt. On a GPU no backend
does that. Stock arms run with this one too: the comparison is of caches, not of attention.
"""

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention


def extend_new_rows(
    backend: Any,
    query: torch.Tensor,
    output: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    req_to_token: torch.Tensor,
    req_pool_indices: torch.Tensor,
    seq_lens: torch.Tensor,
    extend_prefix_lens: torch.Tensor,
    extend_seq_lens: torch.Tensor,
    *,
    scaling: float | None,
    enable_gqa: bool,
    sliding_window_size: int | None,
) -> torch.Tensor:
    """Causal self-attention of each request's new rows over its prefix and themselves.

    Args:
        backend: SGLang's TorchNativeAttnBackend, for its sliding-window mask.
        query: [new tokens of all requests, heads, head size]; `output` likewise, written in place.
        k_cache: [pool tokens, kv heads, head size]; `v_cache` likewise.
        req_to_token: [requests, context] slot of each token in the pool.
        req_pool_indices: [batch] row of each request in `req_to_token`.
        seq_lens: [batch] prefix and new tokens; `extend_prefix_lens` and `extend_seq_lens` apart.
        scaling: softmax scale, None for the usual one.
        enable_gqa: whether query heads share kv heads.
        sliding_window_size: tokens a row sees before itself, None for all.

    Returns:
        `output`.
    """
    start = 0
    rows = zip(
        req_pool_indices.tolist(), seq_lens.tolist(), extend_prefix_lens.tolist(), strict=True
    )
    for row, length, prefix in rows:
        end = start + length - prefix
        slots = req_to_token[row, :length]
        mask = None
        if sliding_window_size is not None:
            mask = backend._make_sliding_window_mask(
                q_len=end - start,
                kv_len=length,
                sliding_window_size=sliding_window_size,
                device=query.device,
                query_offset=prefix,
            )
        elif prefix:
            mask = torch.ones(end - start, length, dtype=torch.bool).tril(prefix)
        output[start:end] = (
            scaled_dot_product_attention(
                query[start:end].movedim(1, 0).unsqueeze(0),
                k_cache[slots].to(query.dtype).movedim(1, 0).unsqueeze(0),
                v_cache[slots].to(query.dtype).movedim(1, 0).unsqueeze(0),
                attn_mask=mask,
                is_causal=mask is None,
                scale=scaling,
                enable_gqa=enable_gqa,
            )
            .squeeze(0)
            .movedim(1, 0)
        )
        start = end
    return output


def install() -> None:
    """Put it into SGLang's torch_native backend; cross and encoder attention stay as they are."""
    from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend

    stock = TorchNativeAttnBackend._run_sdpa_forward_extend

    def run(
        self: Any,
        *tensors: Any,
        scaling: float | None = None,
        enable_gqa: bool = False,
        causal: bool = False,
        is_cross_attn: bool = False,
        sliding_window_size: int | None = None,
    ) -> torch.Tensor:
        *tensors_of_self_attention, encoder_lens = tensors
        if encoder_lens is not None or is_cross_attn or not causal:
            return stock(
                self,
                *tensors,
                scaling=scaling,
                enable_gqa=enable_gqa,
                causal=causal,
                is_cross_attn=is_cross_attn,
                sliding_window_size=sliding_window_size,
            )
        return extend_new_rows(
            self,
            *tensors_of_self_attention,
            scaling=scaling,
            enable_gqa=enable_gqa,
            sliding_window_size=sliding_window_size,
        )

    TorchNativeAttnBackend._run_sdpa_forward_extend = run
