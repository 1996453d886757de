"""The link between host and device memory on the CPU engine: copies that take time.

Both memories are RAM here, so a copy would cost next to nothing. The link carries it out on the
worker of the stream SGLang asks for, and makes each direction as slow as it is told: one clock a
stream, `busy until = max(now, busy until) + bytes / bandwidth`. Figures made with it say
"CPU engine, emulated link".
"""

import contextlib
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

Note = Callable[[float, float], None]
"""Is told of a copy to the device: when it began and when it ended."""


class Link:
    """Copies KV rows between layers, asynchronously and no faster than the link.

    Args:
        gbps: gives the speed in GB/s (10^9 bytes a second) each way, asked for each copy; None
            for as fast as the machine copies.
        note: is told of every copy to the device, in seconds of `time.perf_counter`.
    """

    def __init__(
        self, gbps: Callable[[], float | None] = lambda: None, note: Note | None = None
    ) -> None:
        self._gbps, self._note = gbps, note
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
        began = time.perf_counter()
        busy_until = max(began, self._busy_until.get(stream, 0.0))
        for src, dst in zip(src_layers, dst_layers, strict=True):
            row = src[0].numel()
            chunk = max(1, GRAIN // row)
            for at in range(0, len(src_indices), chunk):
                rows = src.index_select(0, src_indices[at : at + chunk])
                dst.index_copy_(0, dst_indices[at : at + chunk], rows)
                busy_until += rows.nbytes * seconds_per_byte
                _sleep_until(busy_until, if_longer_than=_SLEEP)
        _sleep_until(busy_until)
        self._busy_until[stream] = busy_until
        if self._note is not None and _is_to_device(src_layers[0], dst_layers[0]):
            self._note(began, time.perf_counter())


def _sleep_until(when: float, if_longer_than: float = 0.0) -> None:
    left = when - time.perf_counter()  # looked at once: it may be over a moment later
    if left > if_longer_than:
        time.sleep(left)


def _is_to_device(src: torch.Tensor, dst: torch.Tensor) -> bool:
    """Whether a copy of a layer goes from host to device; both are RAM, and look alike.

    SGLang's host pool is one allocation for all layers (mem_cache/pool_host/mha.py, mla.py) and
    mostly larger than the device pool, which has an allocation for each (memory_pool.py).
    """
    return src.untyped_storage().nbytes() > dst.untyped_storage().nbytes()


def from_environment() -> Link:
    """The link that KVFLOW_LINK_GBPS asks for: a speed, or `@file` that holds one.

    The file is read again for each copy, by the worker, so that the speed of a running server can
    be set (a bench measures what recomputing costs before it knows what the link should be).

    KVFLOW_LINK_LOG names a file to which every copy to the device adds a line: when it began and
    ended, in seconds of `time.perf_counter`, a clock that all processes share. Stock SGLang tells
    nobody when it copies.

    Raises:
        ValueError: not a positive number.
    """
    log = os.environ.get("KVFLOW_LINK_LOG")
    note = _noting(Path(log)) if log else None
    text = os.environ.get("KVFLOW_LINK_GBPS", "")
    if text.startswith("@"):
        path = Path(text[1:])
        return Link(lambda: parse_gbps(path.read_text()), note)
    gbps = parse_gbps(text)
    return Link(lambda: gbps, note)


def _noting(log: Path) -> Note:
    def note(began: float, ended: float) -> None:
        with contextlib.suppress(OSError), log.open("a") as file:  # no copy fails for a note
            file.write(f"{began:.6f} {ended:.6f}\n")

    return note


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
