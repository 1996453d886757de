"""The machine that the console runs on: GPUs, host memory, the server's processes."""

from typing import NamedTuple

from kvflow.telemetry.model import Gpu, Host, Sample
from kvflow.tui.screen import figures
from kvflow.tui.screen.chart import Part, bar, legend
from kvflow.tui.screen.ink import Ink, Line, Piece, apart
from kvflow.tui.screen.view import View

_BUSY = 0.75  # from here on a GPU is called busy
_NEARLY_FULL, _FULL = 0.80, 0.95


def draw(view: View, width: int, height: int) -> list[Line]:
    """A block for each GPU, then one for the host."""
    del height
    sample = view.sample
    if sample is None:
        return [[Piece("not looked at", Ink.MUTED)]]
    lines: list[Line] = []
    if sample.why_no_gpu:
        lines.append([Piece(sample.why_no_gpu, Ink.MUTED)])
    kv = _kv(view, sample)
    for gpu in sample.gpus:
        lines += _gpu(gpu, kv, view, width)
    return lines + (_host(sample.host, view, width) if sample.host else [])


class _Kv(NamedTuple):
    """The device pool in bytes."""

    in_use: int
    evictable: int
    free: int


def _kv(view: View, sample: Sample) -> _Kv | None:
    """The device pool, if it is known to lie on the only GPU here: the server may be elsewhere."""
    frame, is_here = view.store.frame, sample.host is not None and sample.host.processes
    if frame is None or frame.runs_on in ("", "cpu") or not is_here or len(sample.gpus) != 1:
        return None
    pool, size = frame.device, frame.bytes_per_token
    in_use = max(0, pool.capacity - pool.free - pool.evictable)
    return _Kv(in_use * size, pool.evictable * size, pool.free * size)


def _gpu(gpu: Gpu, kv: _Kv | None, view: View, width: int) -> list[Line]:
    title: Line = [Piece(f"GPU {gpu.index} ", Ink.ACCENT), Piece(gpu.name)]
    lines = [apart(title, _load(gpu), width)]
    if gpu.memory_total_bytes and gpu.memory_used_bytes is not None:
        lines += _memory(gpu.memory_used_bytes, gpu.memory_total_bytes, kv, view, width)
    lines.append(_link(gpu))
    if gpu.throttled_by:
        lines.append([Piece(f"throttled by {', '.join(gpu.throttled_by)}", Ink.WARNING)])
    return lines


def _load(gpu: Gpu) -> Line:
    busy = gpu.busy or 0.0
    line = [Piece(f"busy {figures.share(gpu.busy)}", Ink.WARNING if busy >= _BUSY else Ink.PLAIN)]
    if gpu.temperature_c is not None:
        line.append(Piece(f" {gpu.temperature_c} C", Ink.MUTED))
    if gpu.power_w is not None:
        limit = f"/{gpu.power_limit_w:.0f}" if gpu.power_limit_w else ""
        line.append(Piece(f" {gpu.power_w:.0f}{limit} W", Ink.MUTED))
    return line


def _memory(used: int, total: int, kv: _Kv | None, view: View, width: int) -> list[Line]:
    """One bar of the GPU's memory: weights and the like, and the three parts of the KV pool."""
    full, half, faint = view.glyphs.bar[:3]
    share = used / total
    ink = Ink.ERROR if share >= _FULL else Ink.WARNING if share >= _NEARLY_FULL else Ink.PLAIN
    of = f"{figures.size(used)} of {figures.size(total)}"
    if kv is None or sum(kv) > used:
        return [bar([Part(used, full, ink)], total, width), [Piece(f"memory {of}", Ink.MUTED)]]
    named = [
        ("weights etc.", Part(used - sum(kv), "%" if view.plain else "▓", Ink.ACCENT)),
        ("KV in use", Part(kv.in_use, full, Ink.DEVICE)),
        ("evictable", Part(kv.evictable, half, Ink.DEVICE)),
        ("free", Part(kv.free, faint, Ink.DEVICE)),
    ]
    told = [(name, figures.size(part.amount), part) for name, part in named]
    return [
        bar([part for _, part in named], total, width),
        legend(told, width, ("rest", "use", "idle", "free")),
        [Piece("memory ", Ink.MUTED), Piece(of, ink)],
    ]


def _link(gpu: Gpu) -> Line:
    line = [Piece("PCIe ", Ink.MUTED)]
    if gpu.link_generation is not None and gpu.link_width is not None:
        line.append(Piece(f"gen{gpu.link_generation} x{gpu.link_width} "))
        most = (gpu.link_generation_max, gpu.link_width_max)
        if None not in most and most != (gpu.link_generation, gpu.link_width):
            line.append(Piece(f"of gen{most[0]} x{most[1]} ", Ink.MUTED))
    line += [
        Piece("H2D ", Ink.LOADING),
        Piece(f"{figures.rate(gpu.pcie_rx_gbps)} "),
        Piece("D2H ", Ink.OFFLOADING),
        Piece(f"{figures.rate(gpu.pcie_tx_gbps)} "),
        Piece("GB/s, all traffic", Ink.MUTED),
    ]
    return line


def _host(host: Host, view: View, width: int) -> list[Line]:
    used = host.memory_total_bytes - host.memory_available_bytes
    of = f"{figures.size(used)} of {figures.size(host.memory_total_bytes)}"
    cpu = f" CPU {figures.share(host.cpu)} of {host.cpus} cores"
    title = [Piece("host ", Ink.HOST), Piece(f"memory {of}")]
    lines = [
        apart(title, [Piece(cpu, Ink.MUTED)], width),
        bar([Part(used, view.glyphs.bar[0], Ink.HOST)], host.memory_total_bytes, width),
    ]
    if host.processes:
        resident = sum(process.resident_bytes for process in host.processes)
        cores = sum(process.cpu or 0.0 for process in host.processes)
        text = (
            f"server: {len(host.processes)} processes, {figures.size(resident)}, {cores:.1f} cores"
        )
        lines.append([Piece(text, Ink.MUTED)])
    return lines
