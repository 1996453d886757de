"""KV that was copied between the tiers, and what waited for it, for people to look at."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kvflow import frames


@dataclass(slots=True)
class Traffic:
    """Completed copies; none of these ever falls.

    Attributes:
        h2d_bytes: host to device; `d2h_bytes` the other way.
        h2d_operations: copies that SGLang made of them, each of one or many prefixes.
        demand_bytes: of h2d, loaded because a call was there already.
        waits: prefill batches whose forward had to wait for a load.
        h2d_busy_s: that copies took from their start to their end; `d2h_busy_s` the other way.
    """

    h2d_bytes: int = 0
    d2h_bytes: int = 0
    h2d_operations: int = 0
    d2h_operations: int = 0
    demand_bytes: int = 0
    waits: int = 0
    h2d_busy_s: float = 0.0
    d2h_busy_s: float = 0.0

    def loaded(self, ack: Any, *, ahead: bool) -> None:
        """A copy to the device is complete; `ahead`: it was started before a call asked."""
        self.h2d_operations += 1
        self.h2d_bytes += ack.num_bytes
        self.demand_bytes += 0 if ahead else ack.num_bytes
        self.h2d_busy_s += _took_s(ack)

    def written(self, ack: Any) -> None:
        """A copy to the host is complete."""
        self.d2h_operations += 1
        self.d2h_bytes += ack.num_bytes
        self.d2h_busy_s += _took_s(ack)

    def waited_for(self, load: int) -> None:
        """The forward of a prefill batch waits for the load of this number; -1: for none."""
        self.waits += load >= 0

    def frame(self, controller: Any, bytes_per_token: int) -> frames.Traffic:
        """As frames show it, with what is on its way or queued.

        Args:
            controller: SGLang's HiCacheController.
            bytes_per_token: of KV.
        """
        return frames.Traffic(
            h2d_bytes=self.h2d_bytes,
            d2h_bytes=self.d2h_bytes,
            h2d_operations=self.h2d_operations,
            d2h_operations=self.d2h_operations,
            demand_bytes=self.demand_bytes,
            waits=self.waits,
            h2d_busy_s=self.h2d_busy_s,
            d2h_busy_s=self.d2h_busy_s,
            h2d_pending_bytes=_pending(
                controller.ack_load_queue, controller.load_queue, bytes_per_token
            ),
            d2h_pending_bytes=_pending(
                controller.ack_write_queue, controller.write_queue, bytes_per_token
            ),
        )


def _took_s(ack: Any) -> float:
    return ack.start_event.elapsed_time(ack.finish_event) / 1000 if ack.timing_enabled else 0.0


def _pending(started: Iterable[Any], queued: Iterable[Any], bytes_per_token: int) -> int:
    on_the_way: int = sum(ack.num_bytes for ack in started)
    return on_the_way + bytes_per_token * sum(len(op.device_indices) for op in queued)
