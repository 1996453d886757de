"""KV that says which tokens it was computed from, so that every later read can be checked.

The value of a position depends on all tokens up to it and on the namespace, as real KV does.
"""

from collections.abc import Sequence
from typing import Any

import torch
from support.real_cache import FULL, LAYERS, host_pool, nodes, tokens_to

_MODULUS = (1 << 23) - 15  # a float32 holds it exactly


def values(token_ids: Sequence[int], extra_key: str | None) -> torch.Tensor:
    """One number a position."""
    value = sum(map(ord, extra_key or "")) + 1
    found = []
    for token in token_ids:
        value = (value * 8191 + token + 7) % _MODULUS
        found.append(value)
    return torch.tensor(found, dtype=torch.float32)


def write(cache: Any, slots: torch.Tensor, what: torch.Tensor) -> None:
    """What a forward pass does: KV of new positions into their slots, layer by layer."""
    pool = cache.token_to_kv_pool_allocator.get_kvcache()
    for layer in range(LAYERS):
        for buffer, sign in zip(pool.get_kv_buffer(layer), (1, -1), strict=True):
            buffer[slots, 0, 0] = sign * what
            buffer[slots, 0, 1] = layer


def check(buffers: Any, slots: torch.Tensor, expected: torch.Tensor, where: str) -> None:
    """KV in these slots of one layer after another is what was written for these tokens."""
    for layer, (keys, values_) in enumerate(buffers):
        for buffer, sign in ((keys, 1), (values_, -1)):
            rows = buffer[slots, 0]
            assert torch.equal(rows[:, 0], sign * expected), f"wrong KV: {where}, layer {layer}"
            assert bool((rows[:, 1] == layer).all()), f"wrong layer: {where}"


def check_read(cache: Any, slots: torch.Tensor, expected: torch.Tensor, where: str) -> None:
    """What attention does: read through the pool, which waits for layers that are loading."""
    pool = cache.token_to_kv_pool_allocator.get_kvcache()
    check((pool.get_kv_buffer(layer) for layer in range(LAYERS)), slots, expected, where)


def check_tree(cache: Any) -> None:
    """Every node's KV on both tiers is that of its tokens. No copy may be under way."""
    device = cache.token_to_kv_pool_allocator.get_kvcache()
    host = host_pool(cache) if cache.cache_controller is not None else None
    for node in nodes(cache):
        data = node.component_data[FULL]
        expected = values(tokens_to(node), node.key.extra_key)[-len(node.key) :]
        if data.value is not None:
            buffers = zip(device.k_buffer, device.v_buffer, strict=True)
            check(buffers, data.value, expected, f"node {node.id} on the device")
        if data.host_value is not None:
            assert host is not None
            buffers = zip(host.kv_buffer[0], host.kv_buffer[1], strict=True)
            check(buffers, data.host_value, expected, f"node {node.id} on the host")
