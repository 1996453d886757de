"""The few places of HiCache that exist for GPUs only, filled in for the CPU.

Checked against SGLang 0.5.23; kvflow.engine.compat checks the names at start-up.
"""

from typing import Any

import torch

from kvflow.engine.cpu.link import Link

_RESERVE_BYTES = 1 << 30


def _allocate_host(dims: tuple[int, ...], dtype: torch.dtype, device: str, **_: Any) -> Any:
    """SGLang's host allocator without page locking: there is no device that would need it."""
    return torch.empty(dims, dtype=dtype, device=device)


def install(link: Link) -> None:
    """Make HiCache's host pools work with `--hicache-io-backend direct`, layout layer_first."""
    from sglang.srt.mem_cache.pool_host import base, common, mha, mla

    common.ALLOC_MEMORY_FUNCS["cpu"] = _allocate_host
    mha.transfer_kv_direct = link.transfer_kv_direct
    mla.transfer_kv_direct = link.transfer_kv_direct
    # SGLang leaves 10 GiB of RAM alone, which is more than a laptop has to spare.
    base.HICACHE_HOST_MEMORY_RESERVE_BYTES = _RESERVE_BYTES
