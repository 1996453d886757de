"""The link between host and device memory on the CPU engine: copies that take time.

Both memories are RAM here, so a copy would cost next to nothing. The link carries it out on the
worker of the stream SGLang asks for, and makes each direction as slow as it is told: one clock a
stream, `busy until = max(now, busy until) + bytes / bandwidth`. Figures made with it say
"CPU engine, emulated link".
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from weakref import WeakKeyDictionary

import torch

from kvflow.engine.cpu import streams

# ATen's grain: a larger operation opens an OpenMP team, on the worker as well, and two teams on
# one machine slow the forward pass far more than the copy itself does.
GRAIN = 32_768
_SLEEP = 0.001  # seconds the clock may be behind within a copy; its end is exact


class Link:
    """Copies KV rows between layers, asynchronously and no faster than the link.

    Args:
        gbps: gives the speed in GB/s (10^9 bytes a second) each way, asked for each copy; None
            for as fast as the machine copies.
    """

    def __init__(self, gbps: Callable[[], float | None] = lambda: None) -> None:
        self._gbps = gbps
        self._busy_until: WeakKeyDictionary[streams.Stream, float] = WeakKeyDictionary()

    def transfer_kv_direct(
        self,
        src_layers: list[torch.Tensor],
        dst_layers: list[torch.Tensor],
        src_indices: torch.Tensor,
        dst_indices: torch.Tensor,
        page_size: int,
    ) -> None:
        """SGLang's direct copy for the layer_first layout, both ways: dst[i'] = src[i] per layer.

        Args:
            src_layers: one [slots, heads, head size] tensor a layer; `dst_layers` likewise.
            src_indices: slots to read, whole pages; `dst_indices`: slots to write, as many.
            page_size: not needed, since slots are given one by one.
        """
        stream = streams.current_stream()
        stream.submit(lambda: self._copy(stream, src_layers, dst_layers, src_indices, dst_indices))

    @torch.inference_mode()
    def _copy(
        self,
        stream: streams.Stream,
        src_layers: list[torch.Tensor],
        dst_layers: list[torch.Tensor],
        src_indices: torch.Tensor,
        dst_indices: torch.Tensor,
    ) -> None:
        gbps = self._gbps()
        seconds_per_byte = 1 / (gbps * 1e9) if gbps else 0.0
        busy_until = max(time.perf_counter(), self._busy_until.get(stream, 0.0))
        for src, dst in zip(src_layers, dst_layers, strict=True):
            row = src[0].numel()
            chunk = max(1, GRAIN // row)
            for at in range(0, len(src_indices), chunk):
                rows = src.index_select(0, src_indices[at : at + chunk])
                dst.index_copy_(0, dst_indices[at : at + chunk], rows)
                busy_until += rows.nbytes * seconds_per_byte
                if busy_until - time.perf_counter() > _SLEEP:
                    time.sleep(busy_until - time.perf_counter())
        time.sleep(max(0.0, busy_until - time.perf_counter()))
        self._busy_until[stream] = busy_until


def from_environment() -> Link:
    """The link that KVFLOW_LINK_GBPS asks for: a speed, or `@file` that holds one.

    The file is read again for each copy, by the worker, so that the speed of a running server can
    be set (a bench measures what recomputing costs before it knows what the link should be).

    Raises:
        ValueError: not a positive number.
    """
    text = os.environ.get("KVFLOW_LINK_GBPS", "")
    if text.startswith("@"):
        path = Path(text[1:])
        return Link(lambda: parse_gbps(path.read_text()))
    gbps = parse_gbps(text)
    return Link(lambda: gbps)


def parse_gbps(text: str) -> float | None:
    """A speed in GB/s; an empty text is no limit.

    Raises:
        ValueError: not a positive number.
    """
    if not text.strip():
        return None
    gbps = float(text)
    if not 0 < gbps < float("inf"):
        raise ValueError(f"a link needs a speed above 0 GB/s, not {text.strip()}")
    return gbps
