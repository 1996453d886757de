"""The platform that SGLang sees: a CPU, and no kernels of its own.

With the default (empty) capabilities SGLang takes its torch-native allocator and writers and
builds no staging buffers. SGLANG_USE_CPU_ENGINE=1, SGLang's own switch, needs a CPU build of its
kernels instead.
"""

from typing import Any

from sglang.srt.platforms.cpu import CpuDeviceMixin
from sglang.srt.platforms.device_mixin import PlatformEnum
from sglang.srt.platforms.interface import SRTPlatform


class CpuEngine(CpuDeviceMixin, SRTPlatform):
    """SGLang's CPU device operations without its CPU kernels."""

    # As an out-of-tree platform layers run their native forward; as CPU they would want kernels.
    _enum = PlatformEnum.OOT

    def apply_server_args_defaults(self, server_args: Any) -> None:
        """Refuse what the CPU engine cannot do.

        Raises:
            ValueError: with more than one rank (copies are paced by the wall clock, which differs
                between ranks, and ranks must decide alike), or with a HiCache layout that is
                copied by GPU kernels.
        """
        if server_args.tp_size * server_args.pp_size > 1:
            raise ValueError("the kvflow CPU engine serves one rank: leave --tp and --pp at 1")
        layout = (server_args.hicache_io_backend, server_args.hicache_mem_layout)
        if server_args.enable_hierarchical_cache and layout != ("direct", "layer_first"):
            raise ValueError(
                "on the kvflow CPU engine HiCache needs "
                "--hicache-io-backend direct --hicache-mem-layout layer_first"
            )

    def get_default_attention_backend(self) -> str:
        """The only attention backend that runs on a plain CPU."""
        return "torch_native"
